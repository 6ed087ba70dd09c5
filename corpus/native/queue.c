// The queue has room for all elements, but the second element is enqueued only after the first was
// dequeued; the consumer compares with what was stored at its own turn. Shape: queue, SCTBench.
#include <assert.h>
#include <pthread.h>
#define SIZE 3
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int queue[SIZE], stored[SIZE], head, tail, may_enqueue, may_dequeue;
static void enqueue(int value) {
    queue[tail++] = value;
    may_enqueue = 0;
    may_dequeue = 1;
}
static void *produce(void *arg) {
    pthread_mutex_lock(&m);
    enqueue(stored[0] = 10);
    pthread_mutex_unlock(&m);
    for (int i = 1; i < SIZE; i++) {
        pthread_mutex_lock(&m);
        if (may_enqueue)
            enqueue(stored[i] = 10 + i);
        pthread_mutex_unlock(&m);
    }
    return arg;
}
static void *consume(void *arg) {
    for (int i = 0; i < SIZE; i++) {
        pthread_mutex_lock(&m);
        if (may_dequeue) {
            int value = queue[head++];
#ifdef ORDERED
            assert(value >= 10 && value < 10 + SIZE);
#else
            assert(value == stored[i]);
#endif
            may_dequeue = 0;
            may_enqueue = 1;
        }
        pthread_mutex_unlock(&m);
    }
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
