// The main thread does not wait for the other one before it destroys the mutex.
#include <pthread.h>
static pthread_mutex_t m;
static void *hold(void *arg) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_mutex_init(&m, 0);
    pthread_create(&t, 0, hold, 0);
    pthread_mutex_destroy(&m);
    pthread_join(t, 0);
    return 0;
}
