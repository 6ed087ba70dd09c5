// As race_counter, but a mutex protects the counter, and neighbours of it belong to one thread each.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int count;
    char mine[2];
} shared;

static void *increment(void *arg) {
    shared.mine[arg != 0]++;
    pthread_mutex_lock(&lock);
    shared.count++;
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, increment, &lock);
    increment(0);
    pthread_join(t, 0);
    return shared.count + shared.mine[0] + shared.mine[1] - 4;
}
