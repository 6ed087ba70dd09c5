// A flag under a mutex and a condition variable: nothing is lost.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int flag, seen;
static void *consume(void *arg) {
    pthread_mutex_lock(&m);
    while (!flag)
        pthread_cond_wait(&ready, &m);
    seen = flag;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, consume, 0);
    pthread_mutex_lock(&m);
    flag = 7;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    assert(seen == 7);
    return 0;
}
