// An initialisation that does not end is not done: another thread performs it again.
#include <assert.h>
#include <pthread.h>
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int calls, value;
static void initialise(void) {
    if (calls++ == 0)
        pthread_exit(0);
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
    assert(calls == 2);
    return 0;
}
