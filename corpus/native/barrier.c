// All threads write before the barrier and read after it. One of them is the serial thread.
#include <assert.h>
#include <pthread.h>
#define N 3
static pthread_barrier_t barrier;
static int written[N], serial;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {
    long me = (long)arg;
    written[me] = 1;
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        pthread_mutex_lock(&m);
        serial++;
        pthread_mutex_unlock(&m);
    }
    for (int i = 0; i < N; i++)
        assert(written[i]);
    return arg;
}
int main(void) {
    pthread_t threads[N];
    pthread_barrier_init(&barrier, 0, N);
    for (long i = 0; i < N; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (long i = 0; i < N; i++)
        pthread_join(threads[i], 0);
    assert(serial == 1);
    return 0;
}
