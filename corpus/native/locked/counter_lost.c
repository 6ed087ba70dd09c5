// A lost update: the load is an ordinary instruction, the store a locked one (xchg).
#include <assert.h>
#include <pthread.h>

static int count;

static void *add(void *arg) {
    int seen = __atomic_load_n(&count, __ATOMIC_SEQ_CST);
    __atomic_store_n(&count, seen + 1, __ATOMIC_SEQ_CST);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, add, 0);
    add(0);
    pthread_join(t, 0);
    assert(count == 2);
}
