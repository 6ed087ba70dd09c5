// A server with a thread for its connection, and a client, over TCP on this machine.
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static struct sockaddr_in address;
static void *echo(void *arg) {
    int fd = (int)(long)arg;
    char bytes[16];
    for (ssize_t n; (n = recv(fd, bytes, sizeof bytes, 0)) > 0;)
        assert(send(fd, bytes, n, 0) == n);
    close(fd);
    return 0;
}
static void *client(void *arg) {
    char bytes[3];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    assert(write(fd, arg, 3) == 3);
    assert(recv(fd, bytes, 3, MSG_WAITALL) == 3);
    assert(memcmp(bytes, arg, 3) == 0);
    close(fd);
    return 0;
}
int main(void) {
    pthread_t c, s;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert(bind(listener, (struct sockaddr *)&address, len) == 0);
    assert(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
    assert(listen(listener, 4) == 0);
    pthread_create(&c, 0, client, "one");
    int fd = accept(listener, 0, 0);
    assert(fd >= 0);
    pthread_create(&s, 0, echo, (void *)(long)fd);
    pthread_join(c, 0);
    pthread_join(s, 0);
    return 0;
}
