// Makes a futex system call while it blocks all signals, both without the C library.
#include "raw.h"
int main(void) {
    long all[1] = {-1};
    int word = 0;
    asm volatile("mov $8, %%r10d; syscall"
                 :
                 : "a"(SYS_rt_sigprocmask), "D"(0), "S"(all), "d"(0)
                 : "rcx", "r10", "r11", "memory");
    return raw_wake(&word, 1) != 0;
}
