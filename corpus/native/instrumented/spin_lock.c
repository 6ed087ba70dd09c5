// Two threads take a spin lock by test-and-set and increment a plain counter.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int lock;
static int count;

static void *increment(void *arg) {
    while (atomic_exchange(&lock, 1) != 0) {
    }
    count++;
    atomic_store(&lock, 0);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, increment, 0);
    increment(0);
    pthread_join(t, 0);
    assert(count == 2);
    return 0;
}
