// Two locks taken in the same order: no deadlock.

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;

static void *one(void *unused) {
    pthread_mutex_lock(&left);
    pthread_mutex_lock(&right);
    pthread_mutex_unlock(&right);
    pthread_mutex_unlock(&left);
    return unused;
}

static void *two(void *unused) {
    pthread_mutex_lock(&left);
    pthread_mutex_lock(&right);
    pthread_mutex_unlock(&right);
    pthread_mutex_unlock(&left);
    return unused;
}

int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, one, NULL);
    pthread_create(&b, NULL, two, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
