// The first of each group takes the second lock while it holds the first, and gives it back under
// the first: a group that waits for the second lock keeps the other one from giving it back. Shape:
// carter01, SCTBench.
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, l = PTHREAD_MUTEX_INITIALIZER;
static int group[2];
static void *visit(void *number) {
    int *mine = number;
    pthread_mutex_lock(&m);
    if (++*mine == 1)
        pthread_mutex_lock(&l);
    pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m);
    if (--*mine == 0)
        pthread_mutex_unlock(&l);
    pthread_mutex_unlock(&m);
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
