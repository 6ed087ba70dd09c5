// A message and its flag, in this order: a reader that sees the flag sees the message.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int x; // the message
static atomic_int y; // its flag

static void *writer(void *unused) {
    atomic_store(&x, 1);
    atomic_store(&y, 1);
    return unused;
}

static void *reader(void *unused) {
    if (atomic_load(&y) == 1)
        assert(atomic_load(&x) == 1);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, writer, NULL);
    pthread_create(&b, NULL, reader, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
