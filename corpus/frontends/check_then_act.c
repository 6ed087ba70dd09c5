// The driver of the Bluetooth example: a user checks the flag, then uses the device.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int stopped;

static void *user(void *unused) {
    if (atomic_load(&stopped) == 0)
        assert(atomic_load(&stopped) == 0);
    return unused;
}

static void *stopper(void *unused) {
    atomic_store(&stopped, 1);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, user, NULL);
    pthread_create(&b, NULL, stopper, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
