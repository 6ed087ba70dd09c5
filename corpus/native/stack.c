// After the first push the popper pops as often as it likes, also from an empty stack. Shape: stack,
// SCTBench.
#include <assert.h>
#include <pthread.h>
#define SIZE 3
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int stack[SIZE], top, pushed;
static void *push(void *arg) {
    for (int i = 0; i < SIZE; i++) {
        pthread_mutex_lock(&m);
        assert(top < SIZE);
        stack[top++] = i;
        pushed = 1;
        pthread_mutex_unlock(&m);
    }
    return arg;
}
static void *pop(void *arg) {
    for (int i = 0; i < SIZE; i++) {
        pthread_mutex_lock(&m);
#ifdef CHECKS
        if (top > 0)
#else
        if (pushed)
#endif
        {
            assert(top > 0);
            top--;
        }
        pthread_mutex_unlock(&m);
    }
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, push, 0);
    pthread_create(&u, 0, pop, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
