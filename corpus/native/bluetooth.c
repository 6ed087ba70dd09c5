// A driver is stopped between the test that it is running and the count of the operation that uses
// it. Shape: bluetooth_driver, SCTBench; Qadeer and Wu; icb.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t flag = PTHREAD_MUTEX_INITIALIZER, count = PTHREAD_MUTEX_INITIALIZER;
static int stopping, pending = 1, stopped;
static int enter(void) {
#ifdef COUNTS_FIRST
    pthread_mutex_lock(&count);
    pending++;
    pthread_mutex_unlock(&count);
#endif
    pthread_mutex_lock(&flag);
    int stops = stopping;
    pthread_mutex_unlock(&flag);
    if (stops)
        return 0;
#ifndef COUNTS_FIRST
    pthread_mutex_lock(&count);
    pending++;
    pthread_mutex_unlock(&count);
#endif
    return 1;
}
static void leave(void) {
    pthread_mutex_lock(&count);
    if (--pending == 0)
        stopped = 1;
    pthread_mutex_unlock(&count);
}
static void *stop(void *arg) {
    pthread_mutex_lock(&flag);
    stopping = 1;
    pthread_mutex_unlock(&flag);
    leave();
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, stop, 0);
    if (enter()) {
        pthread_mutex_lock(&count);
        assert(!stopped);
        pthread_mutex_unlock(&count);
        leave();
    }
    pthread_join(t, 0);
    return 0;
}
