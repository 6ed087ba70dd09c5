// An event loop with a queue: a thread adds work and wakes the loop by a pipe that does not block.
// The loop handles one item for each wakeup, but wakeups are merged when the pipe has bytes.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int wake[2], queued;
static void *add(void *arg) {
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&m);
        queued++;
        pthread_mutex_unlock(&m);
        if (write(wake[1], "x", 1) != 1)
            return 0;
    }
    return arg;
}
int main(void) {
    pthread_t t;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    char bytes[8];
    int loop = epoll_create1(0), handled = 0;
    assert(pipe2(wake, O_NONBLOCK) == 0);
    assert(epoll_ctl(loop, EPOLL_CTL_ADD, wake[0], &event) == 0);
    pthread_create(&t, 0, add, 0);
    while (handled < 2) {
        assert(epoll_wait(loop, &event, 1, -1) == 1);
        while (read(wake[0], bytes, sizeof bytes) > 0)
            ;
        assert(errno == EAGAIN);
        pthread_mutex_lock(&m);
        queued--;
        handled++;
        pthread_mutex_unlock(&m);
    }
    pthread_join(t, 0);
    return 0;
}
