// A thread reads from a pipe before the other one has written.
#include <pthread.h>
#include <unistd.h>
static int ends[2];
static void *send(void *arg) {
    return write(ends[1], "x", 1) == 1 ? arg : 0;
}
int main(void) {
    pthread_t t;
    char byte;
    if (pipe(ends))
        return 1;
    pthread_create(&t, 0, send, 0);
    if (read(ends[0], &byte, 1) != 1)
        return 1;
    pthread_join(t, 0);
    return 0;
}
