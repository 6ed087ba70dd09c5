// Two owners of a resource: the one that takes the count to zero closes it.
#include <assert.h>
#include <pthread.h>

static long owners = 2;
static int closed;

static void *leave(void *arg) {
    if (__atomic_fetch_sub(&owners, 1, __ATOMIC_ACQ_REL) == 1)
        assert(__atomic_add_fetch(&closed, 1, __ATOMIC_RELAXED) == 1);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, leave, 0);
    leave(0);
    pthread_join(t, 0);
}
