// Main reads two variables while a thread writes them: it sees the second without the first.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int x, y;

static void *writer(void *unused) {
    atomic_store(&x, 1);
    atomic_store(&y, 1);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    int x_seen = atomic_load(&x);
    int y_seen = atomic_load(&y);
    assert(x_seen == y_seen);
    pthread_join(thread, NULL);
}
