// Two values are changed under two locks, one after the other. A reader between the two sees a new
// value with an old one. Shape: twostage, SCTBench.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static int one, two;
static void *set(void *arg) {
#ifdef NESTED
    pthread_mutex_lock(&second);
#endif
    pthread_mutex_lock(&first);
    one = 1;
    pthread_mutex_unlock(&first);
#ifndef NESTED
    pthread_mutex_lock(&second);
#endif
    two = 2;
    pthread_mutex_unlock(&second);
    return arg;
}
static void *check(void *arg) {
    pthread_mutex_lock(&first);
    int seen = one;
    pthread_mutex_unlock(&first);
    if (!seen)
        return arg;
    pthread_mutex_lock(&second);
    assert(two == seen + 1);
    pthread_mutex_unlock(&second);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, set, 0);
    pthread_create(&u, 0, check, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
