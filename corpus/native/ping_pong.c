// Two threads take turns by two pipes.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>
static int ping[2], pong[2];
static int turns;
static void *answer(void *arg) {
    char byte;
    for (int i = 0; i < 3; i++) {
        if (read(ping[0], &byte, 1) != 1)
            return 0;
        assert(turns++ % 2 == 1);
        if (write(pong[1], &byte, 1) != 1)
            return 0;
    }
    return arg;
}
int main(void) {
    pthread_t t;
    char byte = 'x';
    if (pipe(ping) || pipe(pong))
        return 1;
    pthread_create(&t, 0, answer, 0);
    for (int i = 0; i < 3; i++) {
        assert(turns++ % 2 == 0);
        if (write(ping[1], &byte, 1) != 1 || read(pong[0], &byte, 1) != 1)
            return 1;
    }
    pthread_join(t, 0);
    assert(turns == 6);
    return 0;
}
