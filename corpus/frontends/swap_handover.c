// Two threads exchange their number for the one that is there: no number is lost.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int slot, sum;

static void *exchange(void *mine) {
    int got = atomic_exchange(&slot, *(int *)mine);
    atomic_fetch_add(&sum, got);
    return NULL;
}

static int one = 1, two = 2;

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, exchange, &one);
    pthread_create(&b, NULL, exchange, &two);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(atomic_load(&sum) + atomic_load(&slot) == 3);
}
