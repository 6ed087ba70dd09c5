// A counter is read in one critical section and written in another: an increment is lost.

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n;

static void *increment(void *unused) {
    pthread_mutex_lock(&lock);
    int seen = n;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    n = seen + 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, increment, NULL);
    pthread_create(&b, NULL, increment, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_mutex_lock(&lock);
    assert(n == 2);
    pthread_mutex_unlock(&lock);
}
