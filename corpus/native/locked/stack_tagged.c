// The correct twin of stack_aba: every change of the top also changes its tag.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

static int next[3] = {-1, 0, 1};
static uint64_t top = 2;
static int owners[3];

static int node_of(uint64_t tagged) { return (int32_t)tagged; }

static uint64_t with_node(uint64_t old, int node) {
    return ((old >> 32) + 1) << 32 | (uint32_t)node;
}

static int pop(void) {
    uint64_t old = __atomic_load_n(&top, __ATOMIC_ACQUIRE);
    while (node_of(old) >= 0) {
        int second = __atomic_load_n(&next[node_of(old)], __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(&top, &old, with_node(old, second), 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
            break;
    }
    int first = node_of(old);
    if (first >= 0)
        assert(__atomic_add_fetch(&owners[first], 1, __ATOMIC_RELAXED) == 1);
    return first;
}

static void push(int node) {
    __atomic_sub_fetch(&owners[node], 1, __ATOMIC_RELAXED);
    uint64_t old = __atomic_load_n(&top, __ATOMIC_RELAXED);
    do
        __atomic_store_n(&next[node], node_of(old), __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&top, &old, with_node(old, node), 0, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED));
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
