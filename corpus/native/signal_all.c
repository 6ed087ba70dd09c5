// A broadcast wakes all waiting threads.
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int open_gate;
static void *pass(void *arg) {
    pthread_mutex_lock(&m);
    while (!open_gate)
        pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, pass, 0);
    pthread_create(&u, 0, pass, 0);
    pthread_mutex_lock(&m);
    open_gate = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
