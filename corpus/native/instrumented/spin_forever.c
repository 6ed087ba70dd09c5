// A thread waits in a loop for a flag that nobody sets.
#include <pthread.h>
#include <stdatomic.h>

static atomic_int flag;

static void *wait(void *arg) {
    while (atomic_load(&flag) == 0) {
    }
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, wait, 0);
    pthread_join(t, 0);
    return 0;
}
