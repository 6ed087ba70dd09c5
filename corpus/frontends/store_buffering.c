// Store buffering: with sequential consistency one thread sees the other's store.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int x, y, seen;

static void *left(void *unused) {
    atomic_store(&x, 1);
    int other = atomic_load(&y);
    atomic_fetch_add(&seen, other);
    return unused;
}

static void *right(void *unused) {
    atomic_store(&y, 1);
    int other = atomic_load(&x);
    atomic_fetch_add(&seen, other);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, left, NULL);
    pthread_create(&b, NULL, right, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(atomic_load(&seen) > 0);
}
