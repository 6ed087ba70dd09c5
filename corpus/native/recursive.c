// A recursive mutex, locked twice by each thread, and an error-checking one, locked twice.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
static pthread_mutex_t r, e;
static int count;
static void *work(void *arg) {
    pthread_mutex_lock(&r);
    pthread_mutex_lock(&r);
    count++;
    pthread_mutex_unlock(&r);
    pthread_mutex_unlock(&r);
    assert(pthread_mutex_unlock(&r) == EPERM);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&r, &a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&e, &a);
    pthread_create(&t, 0, work, 0);
    pthread_create(&u, 0, work, 0);
    pthread_mutex_lock(&e);
    assert(pthread_mutex_lock(&e) == EDEADLK);
    pthread_mutex_unlock(&e);
    pthread_join(t, 0);
    pthread_join(u, 0);
    assert(count == 2);
    pthread_mutex_destroy(&r);
    pthread_mutex_destroy(&e);
    return 0;
}
