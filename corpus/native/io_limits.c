// Waits for descriptors with time limits, and writes that do not fit into a pipe at once.
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
enum { MUCH = 200000 };
static int data[2], pair[2];
static void *drain(void *arg) {
    static char bytes[65536];
    for (ssize_t n, all = 0; all < MUCH; all += n)
        if ((n = read(data[0], bytes, sizeof bytes)) <= 0)
            abort();
    return arg;
}
int main(void) {
    pthread_t t;
    static char bytes[MUCH];
    struct timeval limit = {0, 50000};
    struct pollfd one;
    fd_set set;
    assert(pipe(data) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pthread_create(&t, 0, drain, 0);
    assert(write(data[1], bytes, MUCH) == MUCH);
    pthread_join(t, 0);
    one = (struct pollfd){pair[0], POLLIN, 0};
    assert(poll(&one, 1, 100) == 0);
    FD_ZERO(&set);
    FD_SET(pair[0], &set);
    assert(select(pair[0] + 1, &set, 0, 0, &limit) == 0 && !FD_ISSET(pair[0], &set));
    limit.tv_usec = 20000;
    assert(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    assert(recv(pair[0], bytes, 1, 0) == -1 && errno == EAGAIN);
    assert(send(pair[1], "x", 1, 0) == 1 && recv(pair[0], bytes, 1, 0) == 1);
    close(pair[1]);
    assert(recv(pair[0], bytes, 1, 0) == 0);
    return 0;
}
