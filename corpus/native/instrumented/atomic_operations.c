// Every atomic operation of every size, with its results checked, while another thread exists.
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CHECK(type, big)                                                                     \
    do {                                                                                     \
        static type x;                                                                       \
        type e;                                                                              \
        __atomic_store_n(&x, (type)5, __ATOMIC_SEQ_CST);                                     \
        assert(__atomic_load_n(&x, __ATOMIC_ACQUIRE) == (type)5);                            \
        assert(__atomic_exchange_n(&x, (type)(big), __ATOMIC_ACQ_REL) == (type)5);           \
        assert(__atomic_fetch_add(&x, (type)3, __ATOMIC_RELAXED) == (type)(big));            \
        assert(__atomic_fetch_sub(&x, (type)2, __ATOMIC_RELEASE) == (type)((big) + 3));      \
        assert(__atomic_fetch_and(&x, (type)0xf0, __ATOMIC_SEQ_CST) == (type)((big) + 1));   \
        assert(__atomic_fetch_or(&x, (type)0x0c, __ATOMIC_SEQ_CST) ==                        \
               (type)(((big) + 1) & 0xf0));                                                  \
        type y = (type)((((big) + 1) & 0xf0) | 0x0c);                                        \
        assert(__atomic_fetch_xor(&x, (type)0x55, __ATOMIC_SEQ_CST) == y);                   \
        y ^= (type)0x55;                                                                     \
        assert(__atomic_fetch_nand(&x, (type)0x3f, __ATOMIC_SEQ_CST) == y);                  \
        y = (type)~(y & (type)0x3f);                                                         \
        e = (type)(y + 1);                                                                   \
        assert(!__atomic_compare_exchange_n(&x, &e, (type)9, false, __ATOMIC_SEQ_CST,        \
                                            __ATOMIC_RELAXED));                              \
        assert(e == y && __atomic_load_n(&x, __ATOMIC_RELAXED) == y);                        \
        assert(__atomic_compare_exchange_n(&x, &e, (type)9, true, __ATOMIC_SEQ_CST,          \
                                           __ATOMIC_RELAXED));                               \
        assert(e == y && __atomic_load_n(&x, __ATOMIC_SEQ_CST) == (type)9);                  \
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                                             \
        __atomic_signal_fence(__ATOMIC_SEQ_CST);                                             \
    } while (0)

typedef unsigned __int128 u128;

// gcc calls libatomic for 16 bytes where it is not told that the processor has the instruction, and
// instruments them in any case.
static void *wide(void *arg) {
    CHECK(u128, ((u128)0x0123456789abcdef << 64) + 0xfedcba9876543210);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, wide, 0);
    CHECK(uint8_t, 0xfe);
    CHECK(uint16_t, 0xfedc);
    CHECK(uint32_t, 0xfedcba98u);
    CHECK(uint64_t, 0xfedcba9876543210u);
    pthread_join(t, 0);
    return 0;
}
