// Two variables are set one after the other, each under its lock. A thread between the two sees one
// of them set. Shape: reorder, SCTBench, with locked accesses.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t la = PTHREAD_MUTEX_INITIALIZER, lb = PTHREAD_MUTEX_INITIALIZER;
static int a, b;
static void *set(void *arg) {
    pthread_mutex_lock(&la);
    a = 1;
#ifndef TOGETHER
    pthread_mutex_unlock(&la);
#endif
    pthread_mutex_lock(&lb);
    b = -1;
    pthread_mutex_unlock(&lb);
#ifdef TOGETHER
    pthread_mutex_unlock(&la);
#endif
    return arg;
}
static void *check(void *arg) {
    pthread_mutex_lock(&la);
    int seen = a;
#ifndef TOGETHER
    pthread_mutex_unlock(&la);
#endif
    pthread_mutex_lock(&lb);
    assert((seen == 0 && b == 0) || (seen == 1 && b == -1));
    pthread_mutex_unlock(&lb);
#ifdef TOGETHER
    pthread_mutex_unlock(&la);
#endif
    return arg;
}
int main(void) {
    pthread_t t, u, v;
    pthread_create(&t, 0, set, 0);
    pthread_create(&u, 0, set, 0);
    pthread_create(&v, 0, check, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    pthread_join(v, 0);
    return 0;
}
