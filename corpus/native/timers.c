// A timer is a descriptor that becomes ready by itself: not controlled.
#include <pthread.h>
#include <sys/timerfd.h>
static void *work(void *arg) {
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    timerfd_create(CLOCK_MONOTONIC, 0);
    pthread_join(t, 0);
    return 0;
}
