// A thread polls under a lock, and yields, until another one has set the flag.
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int flag;
static void *set(void *arg) {
    pthread_mutex_lock(&m);
    flag = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    int now;
    pthread_create(&t, 0, set, 0);
    for (;;) {
        pthread_mutex_lock(&m);
        now = flag;
        pthread_mutex_unlock(&m);
        if (now)
            break;
        sched_yield();
    }
    pthread_join(t, 0);
    return 0;
}
