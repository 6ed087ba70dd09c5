// Waits in a loop for plain memory, without a call: there is no scheduling point.
#include <pthread.h>
static volatile int flag;
static void *set(void *arg) {
    flag = 1;
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, set, 0);
    while (!flag)
        ;
    pthread_join(t, 0);
    return 0;
}
