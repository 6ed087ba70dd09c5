// A thread waits by yielding until the other one has set the flag under the lock.
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int flag;
static void *set(void *arg) {
    pthread_mutex_lock(&m);
    flag = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, set, 0);
    while (!flag)
        sched_yield();
    pthread_join(t, 0);
    return 0;
}
