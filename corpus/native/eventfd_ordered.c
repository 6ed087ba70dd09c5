// The correct twin of eventfd_handoff: first the event, then the value. The event is counted.
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
    value++;
    pthread_mutex_unlock(&m);
    return write(event, &one, 8) == 8 ? arg : 0;
}
int main(void) {
    pthread_t t, u;
    uint64_t count, all = 0;
    event = eventfd(0, 0);
    pthread_create(&t, 0, send, 0);
    pthread_create(&u, 0, send, 0);
    while (all < 2) {
        assert(read(event, &count, 8) == 8);
        all += count;
    }
    assert(value == 2);
    pthread_join(t, 0);
    pthread_join(u, 0);
    return 0;
}
