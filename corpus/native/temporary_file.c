// Writes a file into the directory for temporary files. It must not exist before.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *write_file(void *arg) {
    char path[4096];
    const char *folder = getenv("TMPDIR");
    if (!folder)
        _exit(3);
    snprintf(path, sizeof path, "%s/state", folder);
    pthread_mutex_lock(&m);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1)
        _exit(4);
    close(fd);
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, write_file, 0);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    pthread_join(t, 0);
    return 0;
}
