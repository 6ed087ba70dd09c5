// Reads a number from the standard input: every execution reads the input from its beginning.
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *lock(void *arg) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    int number = -1;
    if (scanf("%d", &number) != 1 && !feof(stdin))
        return 1;
    pthread_t t;
    pthread_create(&t, 0, lock, 0);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return number == 7 || number == -1 ? 0 : 2;
}
