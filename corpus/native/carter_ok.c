// The second lock is taken and given back without the first. The correct twin of carter.c.
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, l = PTHREAD_MUTEX_INITIALIZER;
static int group[2];
static void *visit(void *number) {
    int *mine = number;
    pthread_mutex_lock(&l);
    pthread_mutex_lock(&m);
    ++*mine;
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    --*mine;
    pthread_mutex_unlock(&m);
    pthread_mutex_unlock(&l);
    return 0;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, visit, &group[0]);
    pthread_create(&u, 0, visit, &group[1]);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
