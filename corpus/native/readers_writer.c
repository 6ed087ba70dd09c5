// Readers see the two halves that a writer sets under the lock as equal.
#include <assert.h>
#include <pthread.h>
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int left, right;
static void *write_both(void *arg) {
    pthread_rwlock_wrlock(&lock);
    left++;
    right++;
    pthread_rwlock_unlock(&lock);
    return arg;
}
static void *read_both(void *arg) {
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_rdlock(&lock);
    assert(left == right);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_unlock(&lock);
    return arg;
}
int main(void) {
    pthread_t t, u, v;
    pthread_create(&t, 0, write_both, 0);
    pthread_create(&u, 0, read_both, 0);
    pthread_create(&v, 0, read_both, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    pthread_join(v, 0);
    return 0;
}
