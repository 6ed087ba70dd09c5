// Two threads sleep equally long, and then lose an update: who wakes first is open, and both run
// concurrently afterwards.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void *deposit(void *arg) {
    usleep(50000);
    pthread_mutex_lock(&m);
    int seen = balance;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    balance = seen + 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, deposit, 0);
    pthread_create(&u, 0, deposit, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    assert(balance == 2);
    return 0;
}
