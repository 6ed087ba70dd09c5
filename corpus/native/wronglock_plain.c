// An increment under the wrong lock between a plain read and a plain write under the right one, with
// no call between these. Shape: wronglock, SCTBench.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER, wrong = PTHREAD_MUTEX_INITIALIZER;
static volatile int data;
static void *careful(void *arg) {
    pthread_mutex_lock(&right);
    int before = data;
    data = before + 1;
    assert(data == before + 1);
    pthread_mutex_unlock(&right);
    return arg;
}
static void *careless(void *arg) {
    pthread_mutex_lock(&wrong);
    data = data + 1;
    pthread_mutex_unlock(&wrong);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, careful, 0);
    pthread_create(&u, 0, careless, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
