// Results of threads: by return, by pthread_exit, and through thread-specific destructors.
#include <assert.h>
#include <pthread.h>
static pthread_key_t key;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int destroyed;
static void destroy(void *value) {
    pthread_mutex_lock(&m);
    destroyed += (int)(long)value;
    pthread_mutex_unlock(&m);
}
static void *leave(void *arg) {
    pthread_setspecific(key, (void *)5);
    pthread_exit((char *)arg + 1);
}
static void *back(void *arg) {
    return (char *)arg + 2;
}
int main(void) {
    pthread_t t, u;
    void *a, *b;
    pthread_key_create(&key, destroy);
    pthread_create(&t, 0, leave, (void *)10);
    pthread_create(&u, 0, back, (void *)20);
    pthread_join(t, &a);
    pthread_join(u, &b);
    assert((long)a == 11 && (long)b == 22 && destroyed == 5);
    return 0;
}
