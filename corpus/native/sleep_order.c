// Sleeps for 10 ms instead of waiting for the end of a thread.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int done;
static void *work(void *arg) {
    pthread_mutex_lock(&m);
    done = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    usleep(10000);
    pthread_mutex_lock(&m);
    assert(done);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}
