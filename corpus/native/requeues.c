// Moves waiting threads from one futex word to another, which is refused by name.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static int from, to;

static void *wait(void *arg) {
    syscall(SYS_futex, &from, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, wait, 0);
    syscall(SYS_futex, &from, FUTEX_REQUEUE_PRIVATE, 0, 1, &to, 0);
    syscall(SYS_futex, &to, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    pthread_join(t, 0);
    return 0;
}
