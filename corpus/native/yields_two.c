// Two threads yield until a third one has set the flag.
#include <pthread.h>
#include <sched.h>
static volatile int set;
static void *wait_for_it(void *arg) {
    while (!set) sched_yield();
    return arg;
}
static void *write_set(void *arg) {
    set = 1;
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, wait_for_it, 0);
    pthread_create(&u, 0, write_set, 0);
    wait_for_it(0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
