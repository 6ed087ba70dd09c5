// As race_publish, but fences order the accesses of both threads.
#include <pthread.h>
#include <stdatomic.h>

static int value;
static atomic_int ready;

static void *publish(void *arg) {
    value = 1;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, publish, 0);
    int seen = 1;
    if (atomic_load_explicit(&ready, memory_order_relaxed)) {
        atomic_thread_fence(memory_order_acquire);
        seen = value;
    }
    pthread_join(t, 0);
    return seen - 1;
}
