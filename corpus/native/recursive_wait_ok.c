// A thread keeps a recursive mutex, locked twice, while it waits; it is notified without the mutex.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
static pthread_mutex_t m;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t locked;
static void *notify(void *arg) {
    sem_wait(&locked);
    assert(pthread_mutex_trylock(&m) == EBUSY);
    pthread_cond_signal(&c);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_mutexattr_t a;
    struct timespec hour;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&m, &a);
    sem_init(&locked, 0, 0);
    pthread_mutex_lock(&m);
    pthread_mutex_lock(&m);
    pthread_create(&t, 0, notify, 0);
    sem_post(&locked);
    clock_gettime(CLOCK_REALTIME, &hour);
    hour.tv_sec += 3600;
    int error = pthread_cond_timedwait(&c, &m, &hour);
    assert(error == 0 || error == ETIMEDOUT);
    pthread_join(t, 0);
    assert(pthread_mutex_unlock(&m) == 0);
    assert(pthread_mutex_unlock(&m) == 0);
    assert(pthread_mutex_unlock(&m) == EPERM);
    return 0;
}
