// The flag is set and signalled without the mutex: a signal before the wait is lost.
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static void *wait_for_it(void *arg) {
    pthread_mutex_lock(&m);
    pthread_cond_wait(&ready, &m);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, wait_for_it, 0);
    pthread_cond_signal(&ready);
    pthread_join(t, 0);
    return 0;
}
