// Each of two threads frees a block if it finds that nobody has; they look and free in two steps.
#include <pthread.h>
#include <stdlib.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int *block;
static int freed;
static void *release(void *arg) {
    pthread_mutex_lock(&m);
    int is_freed = freed;
    pthread_mutex_unlock(&m);
    if (!is_freed) {
        free(block);
        pthread_mutex_lock(&m);
        freed = 1;
        pthread_mutex_unlock(&m);
    }
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
