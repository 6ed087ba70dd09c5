// System calls by the instruction itself, as libgomp makes them.
#include <sys/syscall.h>
static inline long raw(long number, long a, long b, long c) {
    long result;
    register long none asm("r10") = 0;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(none)
                 : "rcx", "r11", "memory");
    return result;
}
// FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG.
__attribute__((unused)) static long raw_wait(int *word, int value) {
    return raw(SYS_futex, (long)word, 128, value);
}
__attribute__((unused)) static long raw_wake(int *word, int count) {
    return raw(SYS_futex, (long)word, 129, count);
}
