// Two threads increment a counter without synchronisation: a data race.
#include <pthread.h>

static int count;

static void *increment(void *arg) {
    count++;
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, increment, 0);
    increment(0);
    pthread_join(t, 0);
    return 0;
}
