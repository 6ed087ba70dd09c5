// A wait with a limit of one hour, and a notifier that sleeps for 5 ms first.
#include <assert.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int flag;
static void *set(void *arg) {
    usleep(5000);
    pthread_mutex_lock(&m);
    flag = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 3600;
    pthread_create(&t, 0, set, 0);
    pthread_mutex_lock(&m);
    while (!flag)
        assert(pthread_cond_timedwait(&c, &m, &limit) == 0);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}
