// The reader expects at most both additions. The correct twin of lazy.c.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int data;
static void *add(void *arg) {
    pthread_mutex_lock(&m);
    data += arg ? 2 : 1;
    pthread_mutex_unlock(&m);
    return 0;
}
static void *check(void *arg) {
    pthread_mutex_lock(&m);
    assert(data <= 3);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t, u, v;
    pthread_create(&t, 0, add, 0);
    pthread_create(&u, 0, add, &data);
    pthread_create(&v, 0, check, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    pthread_join(v, 0);
    return 0;
}
