// Two threads poll under one lock, and yield, until a third one has set the flag.
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int set;
static void *wait_for_it(void *arg) {
    for (;;) {
        pthread_mutex_lock(&m);
        int now = set;
        pthread_mutex_unlock(&m);
        if (now)
            return arg;
        sched_yield();
    }
}
static void *write_set(void *arg) {
    pthread_mutex_lock(&m);
    set = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, wait_for_it, 0);
    pthread_create(&u, 0, write_set, 0);
    wait_for_it(0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
