// One thread claims a slot and fills it, then publishes it; the other reads a published slot.
#include <assert.h>
#include <pthread.h>

enum { EMPTY, CLAIMED, FULL };
static int state, value;

static void *fill(void *arg) {
    int expected = EMPTY;
    if (__atomic_compare_exchange_n(&state, &expected, CLAIMED, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        value = 42;
        __atomic_store_n(&state, FULL, __ATOMIC_SEQ_CST);
    }
    return arg;
}

int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, fill, 0);
    pthread_create(&u, 0, fill, 0);
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == FULL)
        assert(value == 42);
    pthread_join(t, 0);
    pthread_join(u, 0);
}
