// The wrong twin of claim: a slot counts as full as soon as it is claimed. The error needs a switch
// *after* the compare-and-exchange, before the ordinary store of the value.
#include <assert.h>
#include <pthread.h>

enum { EMPTY, CLAIMED };
static int state, value;

static void *fill(void *arg) {
    int expected = EMPTY;
    if (__atomic_compare_exchange_n(&state, &expected, CLAIMED, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        value = 42;
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, fill, 0);
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == CLAIMED)
        assert(value == 42);
    pthread_join(t, 0);
}
