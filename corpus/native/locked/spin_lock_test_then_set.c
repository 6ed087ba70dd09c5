// A spin lock whose test and set are two operations: both threads can enter.
#include <assert.h>
#include <pthread.h>
#include <sched.h>

static char held;
static int inside;

static void *enter(void *arg) {
    while (__atomic_load_n(&held, __ATOMIC_ACQUIRE))
        sched_yield();
    __atomic_store_n(&held, 1, __ATOMIC_SEQ_CST);
    assert(__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED) == 1);
    __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&held, 0, __ATOMIC_SEQ_CST);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, enter, 0);
    enter(0);
    pthread_join(t, 0);
}
