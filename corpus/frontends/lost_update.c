// Two threads increment with a load and a store: an increment can be lost.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int n;

static void *increment(void *unused) {
    int seen = atomic_load(&n);
    atomic_store(&n, seen + 1);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, increment, NULL);
    pthread_create(&b, NULL, increment, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(atomic_load(&n) == 2);
}
