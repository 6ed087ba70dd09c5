// Two threads increment a counter by a load and a store: an update can be lost.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int count;

static void *increment(void *arg) {
    int old = atomic_load(&count);
    atomic_store(&count, old + 1);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, increment, 0);
    increment(0);
    pthread_join(t, 0);
    assert(atomic_load(&count) == 2);
    return 0;
}
