// Both threads see what the one-time initialisation has written, and it runs once.
#include <assert.h>
#include <pthread.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int calls, value;
static void initialise(void) {
    calls++;
    value = 42;
}
static void *use(void *arg) {
    pthread_once(&once, initialise);
    assert(value == 42);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, use, 0);
    pthread_create(&u, 0, use, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    assert(calls == 1);
    return 0;
}
