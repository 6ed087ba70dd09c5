// A thread polls under a semaphore, and yields, until another one has set the flag.
#include <sched.h>
#include <semaphore.h>
#include <pthread.h>
static sem_t s;
static int flag;
static void *set(void *arg) {
    sem_wait(&s);
    flag = 1;
    sem_post(&s);
    return arg;
}
int main(void) {
    pthread_t t;
    int now;
    sem_init(&s, 0, 1);
    pthread_create(&t, 0, set, 0);
    for (;;) {
        sem_wait(&s);
        now = flag;
        sem_post(&s);
        if (now)
            break;
        sched_yield();
    }
    pthread_join(t, 0);
    return 0;
}
