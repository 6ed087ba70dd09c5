// The balance is what deposit and withdrawal make of it, in every order. The correct twin of
// account.c.
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance = 1, deposited, withdrawn;
static void *check(void *arg) {
    pthread_mutex_lock(&m);
    if (deposited && withdrawn)
        assert(balance == 1 + 2 - 4);
    pthread_mutex_unlock(&m);
    return arg;
}
static void *deposit(void *arg) {
    pthread_mutex_lock(&m);
    balance += 2;
    deposited = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
static void *withdraw(void *arg) {
    pthread_mutex_lock(&m);
    balance -= 4;
    withdrawn = 1;
    pthread_mutex_unlock(&m);
    return arg;
}
int main(void) {
    pthread_t t, u, v;
    pthread_create(&t, 0, check, 0);
    pthread_create(&u, 0, deposit, 0);
    pthread_create(&v, 0, withdraw, 0);
    pthread_join(t, 0);
    pthread_join(u, 0);
    pthread_join(v, 0);
    return 0;
}
