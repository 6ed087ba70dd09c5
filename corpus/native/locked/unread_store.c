// Two threads announce themselves by ordinary stores and look for the other one after a locked
// instruction. In a sequentially consistent execution at least one of them sees the other.
#include <assert.h>
#include <pthread.h>

static int announced[2], alone, fence;

static void *enter(void *arg) {
    int own = arg != 0;
    __atomic_store_n(&announced[own], 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&fence, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&announced[!own], __ATOMIC_ACQUIRE))
        assert(__atomic_add_fetch(&alone, 1, __ATOMIC_RELAXED) == 1);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, enter, announced);
    enter(0);
    pthread_join(t, 0);
}
