// A thread that finds the other one first aborts.
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int first;
static void *work(void *arg) {
    pthread_mutex_lock(&m);
    if (first == 0)
        first = (int)(long)arg;
    if (first == 2)
        abort();
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, work, (void *)1);
    pthread_create(&u, 0, work, (void *)2);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
