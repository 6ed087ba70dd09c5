// The notification and the timeout come at the same time: the flag may be set after a timeout, and
// the program takes for granted that it is not.
#include <assert.h>
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
    int received = sent || pthread_cond_timedwait(&c, &m, &limit) == 0;
    assert(received == sent);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}
