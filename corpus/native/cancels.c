// Cancels a thread, which is refused by name.
#include <pthread.h>
#include <unistd.h>

static void *wait(void *arg) {
    pause();
    return arg;
}

int main(void) {
    pthread_t t;
    pthread_create(&t, 0, wait, 0);
    pthread_cancel(t);
    pthread_join(t, 0);
    return 0;
}
