// One of two writers uses another lock, so the value changes under the lock of the reader. Shape:
// wronglock, SCTBench, with a call between the two reads.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
#ifdef RIGHT
#define WRONG right
#else
static pthread_mutex_t wrong = PTHREAD_MUTEX_INITIALIZER;
#define WRONG wrong
#endif
static int data, lines;
static void *read_twice(void *arg) {
    pthread_mutex_lock(&right);
    int before = data;
    pthread_mutex_lock(&journal);
    lines++;
    pthread_mutex_unlock(&journal);
    assert(data == before);
    pthread_mutex_unlock(&right);
    return arg;
}
static void *write_data(void *arg) {
    pthread_mutex_lock(&WRONG);
    data++;
    pthread_mutex_unlock(&WRONG);
    return arg;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, read_twice, 0);
    pthread_create(&u, 0, write_data, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
