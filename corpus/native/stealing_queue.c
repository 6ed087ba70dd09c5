// The work-stealing queue of Cilk (the THE protocol): the owner pushes and pops at the tail without
// a lock as long as it cannot meet the thief, which steals at the head under the lock. No element is
// taken twice, and none is lost. Shape: the work-stealing queue of icb, and chess.WSQ, SCTBench.
#include <assert.h>
#include "cells.h"
#define ELEMENTS 2
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cell head = CELL(0), tail = CELL(0);
static int element[ELEMENTS], taken[ELEMENTS + 1];
static void take(int value) {
    assert(!taken[value]);
    taken[value] = 1;
}
static void push(int value) {
    int t = load(&tail);
    element[t] = value;
    store(&tail, t + 1);
}
static void pop(void) {
    int t = load(&tail) - 1;
#ifdef EARLY_READ
    int h = load(&head);
    store(&tail, t);
#else
    store(&tail, t);
    int h = load(&head);
#endif
    if (h <= t) {
        take(element[t]);
        return;
    }
    // The thief may be at the same element.
    store(&tail, t + 1);
    pthread_mutex_lock(&lock);
    t = load(&tail) - 1;
    store(&tail, t);
#ifndef STALE_HEAD
    h = load(&head);
#endif
    if (h <= t) {
        take(element[t]);
    } else {
        store(&head, 0);
        store(&tail, 0);
    }
    pthread_mutex_unlock(&lock);
}
static void steal(void) {
#ifndef NO_LOCK
    pthread_mutex_lock(&lock);
#endif
    int h = load(&head);
    store(&head, h + 1);
    if (h < load(&tail))
        take(element[h]);
    else
        store(&head, h);
#ifndef NO_LOCK
    pthread_mutex_unlock(&lock);
#endif
}
static void *thief(void *arg) {
    steal();
    return arg;
}
int main(void) {
    pthread_t t;
    push(1);
    push(2);
    pthread_create(&t, 0, thief, 0);
    pop();
    pop();
    pthread_join(t, 0);
    int all = taken[1] + taken[2] + tail.value - head.value;
    assert(all == ELEMENTS);
    return 0;
}
