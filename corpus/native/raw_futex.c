// A thread waits for another one by futex system calls that are made without the C library. It
// reads a flag, and then waits on a word that never changes: a wake-up in between is lost.
#include "raw.h"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int ready, event;
static void *waits(void *arg) {
    pthread_mutex_lock(&m);
    int seen = ready;
    pthread_mutex_unlock(&m);
    if (!seen)
        raw_wait(&event, 0);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, waits, 0);
    pthread_mutex_lock(&m);
    ready = 1;
    pthread_mutex_unlock(&m);
    raw_wake(&event, 1);
    pthread_join(t, 0);
    return 0;
}
