// Two threads poll under one lock, and yield, until the other one has set its flag.
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int flags[2];
static void set(int which) {
    pthread_mutex_lock(&m);
    flags[which] = 1;
    pthread_mutex_unlock(&m);
}
static void await(int which) {
    for (;;) {
        pthread_mutex_lock(&m);
        int now = flags[which];
        pthread_mutex_unlock(&m);
        if (now)
            return;
        sched_yield();
    }
}
static void *answer(void *arg) {
    await(0);
    set(1);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, answer, 0);
    set(0);
    await(1);
    pthread_join(t, 0);
    return 0;
}
