// The thread may run before its creator has set the pointer that it uses.
#include <pthread.h>
static int *value;
static int storage;
static void *use(void *arg) {
    *value = 1;
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, use, 0);
    value = &storage;
    pthread_join(t, 0);
    return 0;
}
