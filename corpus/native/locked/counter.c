// The correct twin of counter_lost: one instruction reads and writes.
#include <assert.h>
#include <pthread.h>

static int count;

static void *add(void *arg) {
    __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, add, 0);
    add(0);
    pthread_join(t, 0);
    assert(count == 2);
}
