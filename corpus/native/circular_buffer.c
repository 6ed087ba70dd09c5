// The receiver counts its turns instead of the elements that it received. Shape: circular_buffer,
// SCTBench.
#include <assert.h>
#include <pthread.h>
#define TURNS 3
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int buffer[TURNS], first, next, full;
static void *send(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&m);
        if (!full) {
            buffer[next] = next;
            next++;
            full = 1;
        }
        pthread_mutex_unlock(&m);
    }
    return arg;
}
static void *receive(void *arg) {
    int received = 0;
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&m);
        if (full) {
#ifdef COUNTS_ELEMENTS
            assert(buffer[first++] == received++);
#else
            (void)received;
            assert(buffer[first++] == i);
#endif
            full = 0;
        }
        pthread_mutex_unlock(&m);
    }
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, send, 0);
    pthread_create(&u, 0, receive, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
