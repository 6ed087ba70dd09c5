// Two threads read under a reader-writer lock while main writes.

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int x, y;

static void *reader(void *unused) {
    pthread_rwlock_rdlock(&lock);
    assert(x == y);
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, reader, NULL);
    pthread_create(&b, NULL, reader, NULL);
    pthread_rwlock_wrlock(&lock);
    x = 1;
    y = 1;
    pthread_rwlock_unlock(&lock);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
