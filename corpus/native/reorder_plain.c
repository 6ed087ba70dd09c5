// Two plain variables are set one after the other, without locks. Only an execution that switches
// between the two plain writes shows it, and calls are not between them. Shape: reorder, SCTBench.
#include <assert.h>
#include <pthread.h>
static volatile int a, b;
static void *set(void *arg) {
    a = 1;
    b = -1;
    return arg;
}
static void *check(void *arg) {
    int seen = a;
    assert((seen == 0 && b == 0) || (seen == 1 && b == -1));
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
