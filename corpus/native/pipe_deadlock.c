// Two threads read from each other's pipe before they write to their own; only one of them may.
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int to_main[2], to_thread[2];
static int asked;
static void *serve(void *arg) {
    char byte;
    pthread_mutex_lock(&m);
    int first = !asked++;
    pthread_mutex_unlock(&m);
    if (first && read(to_thread[0], &byte, 1) != 1)
        return 0;
    return write(to_main[1], "a", 1) == 1 ? arg : 0;
}
int main(void) {
    pthread_t t;
    char byte;
    if (pipe(to_main) || pipe(to_thread))
        return 1;
    pthread_create(&t, 0, serve, 0);
    pthread_mutex_lock(&m);
    asked++;
    pthread_mutex_unlock(&m);
    if (read(to_main[0], &byte, 1) != 1 || write(to_thread[1], "b", 1) != 1)
        return 1;
    pthread_join(t, 0);
    return 0;
}
