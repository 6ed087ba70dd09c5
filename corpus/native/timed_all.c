// Every wait with a limit ends by it, in the order of the deadlines, while the lock is held for
// longer: no other result is possible.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static sem_t empty;
static struct timespec in(int milliseconds) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += milliseconds * 1000000L;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}
static void *hold(void *arg) {
    pthread_mutex_lock(&m);
    pthread_rwlock_wrlock(&rw);
    usleep(200000);
    pthread_rwlock_unlock(&rw);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    sem_init(&empty, 0, 0);
    pthread_create(&t, 0, hold, 0);
    usleep(10000);
    struct timespec start, now, limit = in(20);
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert(pthread_mutex_timedlock(&m, &limit) == ETIMEDOUT);
    limit = in(20);
    assert(pthread_rwlock_timedrdlock(&rw, &limit) == ETIMEDOUT);
    limit = in(20);
    assert(pthread_rwlock_timedwrlock(&rw, &limit) == ETIMEDOUT);
    limit = in(20);
    assert(sem_timedwait(&empty, &limit) == -1 && errno == ETIMEDOUT);
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert(now.tv_nsec - start.tv_nsec + (now.tv_sec - start.tv_sec) * 1000000000L >= 80000000);
    limit = in(500);
    assert(pthread_mutex_timedlock(&m, &limit) == 0);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}
