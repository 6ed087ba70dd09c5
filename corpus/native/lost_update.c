// The lock is released between the read and the write: an update is lost.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void *deposit(void *arg) {
    pthread_mutex_lock(&m);
    int read = balance;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    balance = read + 1;
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
