// The semaphore admits two values to a buffer of one: a value is overwritten.
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
static sem_t slots, items;
static int buffer;
static void *produce(void *arg) {
    for (int i = 1; i <= 2; i++) {
        sem_wait(&slots);
        buffer = i;
        sem_post(&items);
    }
    return arg;
}
int main(void) {
    pthread_t t;
    sem_init(&slots, 0, 2);
    sem_init(&items, 0, 0);
    pthread_create(&t, 0, produce, 0);
    for (int i = 1; i <= 2; i++) {
        sem_wait(&items);
        assert(buffer == i);
        sem_post(&slots);
    }
    pthread_join(t, 0);
    return 0;
}
