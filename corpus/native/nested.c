// Threads that create threads. Which of them exists first depends on the schedule, and one is
// created only if the first finds the door open.
#include <assert.h>
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int door, visitors;

static void *visit(void *arg) {
    pthread_mutex_lock(&m);
    visitors++;
    pthread_mutex_unlock(&m);
    return 0;
}

static void *guide(void *arg) {
    pthread_t t, u;
    pthread_create(&t, 0, visit, 0);
    pthread_mutex_lock(&m);
    int open = door;
    pthread_mutex_unlock(&m);
    if (open)
        pthread_create(&u, 0, visit, 0);
    pthread_join(t, 0);
    if (open)
        pthread_join(u, 0);
    return 0;
}

static void *porter(void *arg) {
    pthread_mutex_lock(&m);
    door = 1;
    pthread_mutex_unlock(&m);
    return 0;
}

int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, guide, 0);
    pthread_create(&u, 0, porter, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    assert(visitors >= 1 && visitors <= 2);
    return 0;
}
