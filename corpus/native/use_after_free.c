// A thread locks the mutex of a record that the main thread may have freed.
#include <pthread.h>
#include <stdlib.h>
struct record {
    pthread_mutex_t m;
    int value;
};
static void *use(void *arg) {
    struct record *record = arg;
    pthread_mutex_lock(&record->m);
    record->value++;
    pthread_mutex_unlock(&record->m);
    return arg;
}
int main(void) {
    struct record *record = calloc(1, sizeof *record);
    pthread_mutex_init(&record->m, 0);
    pthread_t t;
    pthread_create(&t, 0, use, record);
    pthread_mutex_lock(&record->m);
    record->value++;
    pthread_mutex_unlock(&record->m);
    // The thread should be joined first.
    free(record);
    pthread_join(t, 0);
    return 0;
}
