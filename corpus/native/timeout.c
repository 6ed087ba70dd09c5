// A timed wait may time out although the other thread sets the flag, if that thread is delayed.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int flag;
static void *set(void *arg) {
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
    limit.tv_sec += 1;
    pthread_create(&t, 0, set, 0);
    pthread_mutex_lock(&m);
    int result = 0;
    while (!flag && result == 0)
        result = pthread_cond_timedwait(&c, &m, &limit);
    assert(result != ETIMEDOUT);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}
