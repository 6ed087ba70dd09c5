// Each thread copies its neighbour once. They agree only if they run in the order of the ring.
// Shape: token_ring, SCTBench.
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int x[3] = {1, 2, 1}, done;
#ifdef ORDERED
static sem_t turn[4];
#define BEGIN(n) sem_wait(&turn[n])
#define END(n) sem_post(&turn[n + 1])
#else
#define BEGIN(n)
#define END(n)
#endif
static void *first(void *arg) {
    BEGIN(0);
    pthread_mutex_lock(&m);
    x[0] = (x[2] + 1) % 4;
    done++;
    pthread_mutex_unlock(&m);
    END(0);
    return arg;
}
static void *second(void *arg) {
    BEGIN(1);
    pthread_mutex_lock(&m);
    x[1] = x[0];
    done++;
    pthread_mutex_unlock(&m);
    END(1);
    return arg;
}
static void *third(void *arg) {
    BEGIN(2);
    pthread_mutex_lock(&m);
    x[2] = x[1];
    done++;
    pthread_mutex_unlock(&m);
    END(2);
    return arg;
}
int main(void) {
    pthread_t t, u, v;
#ifdef ORDERED
    for (int i = 0; i < 4; i++)
        sem_init(&turn[i], 0, i == 0);
#endif
    pthread_create(&t, 0, first, 0);
    pthread_create(&u, 0, second, 0);
    pthread_create(&v, 0, third, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    pthread_join(v, 0);
    assert(done == 3 && x[0] == x[1] && x[1] == x[2]);
    return 0;
}
