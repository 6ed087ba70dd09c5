// A flag is set without the lock of its condition variable: the notification can be lost.

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int ready;

static void *setter(void *unused) {
    atomic_store(&ready, 1);
    pthread_cond_signal(&changed);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, setter, NULL);
    pthread_mutex_lock(&lock);
    while (atomic_load(&ready) == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}
