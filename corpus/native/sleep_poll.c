// A thread polls a flag under a lock, and sleeps in between; the other one takes its time.
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int flag;
static void *set(void *arg) {
    usleep(2500);
    pthread_mutex_lock(&m);
    flag = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, set, 0);
    for (int seen = 0; !seen;) {
        pthread_mutex_lock(&m);
        seen = flag;
        pthread_mutex_unlock(&m);
        if (!seen)
            usleep(1000);
    }
    pthread_join(t, 0);
    return 0;
}
