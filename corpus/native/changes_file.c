// Reads and changes a file: the same schedule does not lead to the same execution.
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(int argc, char **argv) {
    pthread_t t;
    int runs = 0;
    FILE *file = fopen(argv[argc - 1], "r");
    if (file) {
        if (fscanf(file, "%d", &runs) != 1)
            runs = 0;
        fclose(file);
    }
    file = fopen(argv[argc - 1], "w");
    if (!file)
        return 1;
    fprintf(file, "%d\n", runs + 1);
    fclose(file);
    pthread_create(&t, 0, work, 0);
    for (int i = 0; i < runs; i++) {
        pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m);
    }
    pthread_join(t, 0);
    return 0;
}
