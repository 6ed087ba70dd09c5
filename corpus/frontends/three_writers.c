// Three threads store to one variable: six orders, and any of them can be the last.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int x;

static void *writer(void *value) {
    atomic_store(&x, *(int *)value);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    static int values[] = {1, 2, 3};
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, writer, &values[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&x) > 0);
}
