// A lock-free stack whose nodes are used again: a pop that was delayed takes a next pointer that is
// no longer valid (the ABA problem), and one node is taken twice.
#include <assert.h>
#include <pthread.h>

static int next[3] = {-1, 0, 1};
static int top = 2;
static int owners[3];

static int pop(void) {
    int first = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
    while (first >= 0) {
        int second = __atomic_load_n(&next[first], __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&top, &first, second, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            break;
    }
    if (first >= 0)
        assert(__atomic_add_fetch(&owners[first], 1, __ATOMIC_RELAXED) == 1);
    return first;
}

static void push(int node) {
    __atomic_sub_fetch(&owners[node], 1, __ATOMIC_RELAXED);
    int first = __atomic_load_n(&top, __ATOMIC_RELAXED);
    do
        __atomic_store_n(&next[node], first, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&top, &first, node, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void *other(void *arg) {
    int first = pop();
    pop();
    if (first >= 0)
        push(first);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, other, 0);
    pop();
    pop();
    pthread_join(t, 0);
}
