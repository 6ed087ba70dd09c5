// Two threads print, each under the lock. No execution fails, and not all print the same.
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *print(void *name) {
    pthread_mutex_lock(&m);
    puts(name);
    pthread_mutex_unlock(&m);
    return 0;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, print, "one");
    pthread_create(&u, 0, print, "two");
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
