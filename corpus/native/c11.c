// Threads, mutexes and condition variables of C11.
#include <assert.h>
#include <threads.h>
static mtx_t m;
static cnd_t c;
static int flag;
static int wait_for_it(void *arg) {
    mtx_lock(&m);
    while (!flag)
        cnd_wait(&c, &m);
    mtx_unlock(&m);
    return (int)(long)arg + 1;
}
int main(void) {
    thrd_t t;
    int result;
    mtx_init(&m, mtx_plain);
    cnd_init(&c);
    thrd_create(&t, wait_for_it, (void *)6);
    mtx_lock(&m);
    flag = 1;
    cnd_signal(&c);
    mtx_unlock(&m);
    thrd_join(t, &result);
    assert(result == 7);
    return 0;
}
