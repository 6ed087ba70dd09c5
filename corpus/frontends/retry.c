// Two threads increment with a compare-and-swap that is repeated until it succeeds.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int n;

static void *increment(void *unused) {
    for (;;) {
        int seen = atomic_load(&n);
        if (atomic_compare_exchange_strong(&n, &seen, seen + 1))
            return unused;
    }
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, increment, NULL);
    pthread_create(&b, NULL, increment, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(atomic_load(&n) == 2);
}
