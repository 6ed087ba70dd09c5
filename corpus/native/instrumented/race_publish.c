// A value is published by a relaxed store: the thread that sees the flag may not see the value.
#include <pthread.h>
#include <stdatomic.h>

static int value;
static atomic_int ready;

static void *publish(void *arg) {
    value = 1;
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, publish, 0);
    int seen = atomic_load_explicit(&ready, memory_order_acquire) ? value : 1;
    pthread_join(t, 0);
    return seen - 1;
}
