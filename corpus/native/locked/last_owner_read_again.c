// The wrong twin of last_owner: the count is decremented, then read again, so both owners can find
// zero. The error needs a switch *after* the locked instruction, before the ordinary load.
#include <assert.h>
#include <pthread.h>

static long owners = 2;
static int closed;

static void *leave(void *arg) {
    __atomic_fetch_sub(&owners, 1, __ATOMIC_ACQ_REL);
    if (__atomic_load_n(&owners, __ATOMIC_ACQUIRE) == 0)
        assert(__atomic_add_fetch(&closed, 1, __ATOMIC_RELAXED) == 1);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, leave, 0);
    leave(0);
    pthread_join(t, 0);
}
