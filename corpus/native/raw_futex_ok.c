// As raw_futex, but the word changes with the flag, and the kernel compares it. That the thread
// blocks all signals makes no difference.
#include "raw.h"
#include <pthread.h>
#include <signal.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int ready;
static void *waits(void *arg) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    pthread_mutex_lock(&m);
    int seen = ready;
    pthread_mutex_unlock(&m);
    if (!seen)
        raw_wait(&ready, 0);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, waits, 0);
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_mutex_unlock(&m);
    raw_wake(&ready, 1);
    pthread_join(t, 0);
    return 0;
}
