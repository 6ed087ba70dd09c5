// A value is handed over by an eventfd; the receiver reads the value before the event.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int event, value;
static void *send(void *arg) {
    uint64_t one = 1;
    pthread_mutex_lock(&m);
    value = 7;
    pthread_mutex_unlock(&m);
    return write(event, &one, 8) == 8 ? arg : 0;
}
int main(void) {
    pthread_t t;
    uint64_t count;
    event = eventfd(0, 0);
    pthread_create(&t, 0, send, 0);
    pthread_mutex_lock(&m);
    int seen = value;
    pthread_mutex_unlock(&m);
    assert(read(event, &count, 8) == 8 && count == 1);
    assert(seen == 7);
    pthread_join(t, 0);
    return 0;
}
