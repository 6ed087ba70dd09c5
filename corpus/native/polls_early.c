// A thread that polls under a lock sees the flag before the other one has set the value.
#include <assert.h>
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int flag, value;
static void *set(void *arg) {
    pthread_mutex_lock(&m);
    flag = 1;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    value = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    int now, seen;
    pthread_create(&t, 0, set, 0);
    for (;;) {
        pthread_mutex_lock(&m);
        now = flag, seen = value;
        pthread_mutex_unlock(&m);
        if (now)
            break;
        sched_yield();
    }
    assert(seen == 1);
    pthread_join(t, 0);
    return 0;
}
