// Three philosophers, each takes the left fork first: a deadlock that needs one preemption.
#include <pthread.h>
#define N 3
static pthread_mutex_t forks[N];
static void *dine(void *arg) {
    long me = (long)arg;
    pthread_mutex_lock(&forks[me]);
    pthread_mutex_lock(&forks[(me + 1) % N]);
    pthread_mutex_unlock(&forks[(me + 1) % N]);
    pthread_mutex_unlock(&forks[me]);
    return arg;
}
int main(void) {
    pthread_t threads[N];
    for (long i = 0; i < N; i++)
        pthread_mutex_init(&forks[i], 0);
    for (long i = 0; i < N; i++)
        pthread_create(&threads[i], 0, dine, (void *)i);
    for (long i = 0; i < N; i++)
        pthread_join(threads[i], 0);
    return 0;
}
