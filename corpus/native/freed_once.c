// As double_free, but a thread that frees the block says so in the same step.
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int *block;
static int freed;
static void *release(void *arg) {
    pthread_mutex_lock(&m);
    if (!freed) {
        freed = 1;
        free(block);
    }
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    block = malloc(sizeof *block);
    pthread_t t;
    pthread_create(&t, 0, release, 0);
    release(0);
    pthread_join(t, 0);
    return 0;
}
