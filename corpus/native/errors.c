// The errors of the C library for invalid times, for semaphores at their limits and for a mutex
// that the caller does not own.
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
static const struct timespec invalid = {0, 1000000000}, negative = {0, -1}, past = {-1, 0};
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static mtx_t n;
static sem_t full;
static void *try(void *arg) {
    assert(pthread_mutex_timedlock(&m, &invalid) == EINVAL);
    assert(pthread_mutex_timedlock(&m, &past) == ETIMEDOUT);
    assert(mtx_timedlock(&n, &negative) == thrd_error);
    assert(sem_wait(&full) == 0);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
    pthread_mutexattr_t a;
    pthread_mutex_t checked, recursive;
    sem_t s;
    cnd_t d;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checked, &a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &a);
    mtx_init(&n, mtx_timed);
    cnd_init(&d);

    assert(sem_init(&s, 0, SEM_VALUE_MAX + 1u) == -1 && errno == EINVAL);
    assert(sem_init(&s, 0, 1) == 0);
    errno = 0;
    assert(sem_timedwait(&s, &invalid) == -1 && errno == EINVAL);
    assert(sem_trywait(&s) == 0);
    assert(sem_init(&full, 0, SEM_VALUE_MAX) == 0);
    assert(sem_post(&full) == -1 && errno == EOVERFLOW);

    assert(pthread_mutex_timedlock(&m, &invalid) == 0);
    assert(pthread_cond_timedwait(&c, &m, &invalid) == EINVAL);
    assert(pthread_cond_timedwait(&c, &m, &negative) == EINVAL);
    assert(pthread_cond_timedwait(&c, &m, &past) == ETIMEDOUT);
    assert(pthread_cond_wait(&c, &checked) == EPERM);
    assert(pthread_cond_wait(&c, &recursive) == EPERM);
    assert(mtx_lock(&n) == thrd_success);
    assert(cnd_timedwait(&d, &n, &invalid) == thrd_error);
    assert(pthread_mutex_lock(&checked) == 0);
    assert(pthread_mutex_timedlock(&checked, &invalid) == EDEADLK);
    assert(pthread_rwlock_timedrdlock(&l, &invalid) == EINVAL);
    assert(pthread_rwlock_timedwrlock(&l, &invalid) == EINVAL);

    errno = 0;
    assert(nanosleep(&invalid, 0) == -1 && errno == EINVAL);
    assert(nanosleep(&past, 0) == -1 && errno == EINVAL);
    assert(clock_nanosleep(CLOCK_MONOTONIC, 0, &negative, 0) == EINVAL);
    assert(thrd_sleep(&invalid, 0) == -2);

    volatile size_t huge = (size_t)1 << 62;
    errno = 0;
    assert(!malloc(huge) && errno == ENOMEM);
    void *block = malloc(1);
    assert(block && !realloc(block, huge) && !calloc(huge, 1));
    free(block);

    pthread_create(&t, 0, try, 0);
    pthread_join(t, 0);
    assert(sem_post(&full) == 0);
    return 0;
}
