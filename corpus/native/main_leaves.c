// The main thread ends before or after the only other one: whoever is last ends the process.
#include <pthread.h>
static void *work(void *arg) {
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    pthread_exit(0);
}
