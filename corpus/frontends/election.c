// Two threads try to become the leader with a compare-and-swap: exactly one does.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int leader, leaders;

static void *candidate(void *me) {
    int none = 0;
    if (atomic_compare_exchange_strong(&leader, &none, *(int *)me))
        atomic_fetch_add(&leaders, 1);
    return NULL;
}

static int one = 1, two = 2;

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, candidate, &one);
    pthread_create(&b, NULL, candidate, &two);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(atomic_load(&leaders) == 1);
}
