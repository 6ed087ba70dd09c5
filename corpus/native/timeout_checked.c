// The correct twin of timeout_race: the flag decides, not how the wait ended.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int sent;
static void *send(void *arg) {
    usleep(5000);
    pthread_mutex_lock(&m);
    sent = 1;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    struct timespec limit;
    pthread_create(&t, 0, send, 0);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 5000000;
    pthread_mutex_lock(&m);
    int result = 0;
    while (!sent && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&c, &m, &limit);
    assert(sent || result == ETIMEDOUT);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}
