// The consumer does not consume: it announces room that is not there, and the producer waits again.
// Shape: sync01, SCTBench.
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t empty = PTHREAD_COND_INITIALIZER, full = PTHREAD_COND_INITIALIZER;
static int num = 1;
static void *produce(void *arg) {
    pthread_mutex_lock(&m);
    while (num > 0)
        pthread_cond_wait(&empty, &m);
    num++;
    pthread_mutex_unlock(&m);
    pthread_cond_signal(&full);
    return arg;
}
static void *consume(void *arg) {
    pthread_mutex_lock(&m);
    while (num == 0)
        pthread_cond_wait(&full, &m);
#ifdef CONSUMES
    num--;
#endif
    pthread_mutex_unlock(&m);
    pthread_cond_signal(&empty);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, produce, 0);
    pthread_create(&u, 0, consume, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
