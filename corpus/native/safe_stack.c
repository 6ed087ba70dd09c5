// A stack of free elements whose `pop` marks an element before it takes it. Two threads can hold the
// same element, but that takes a third thread and five preemptions; fewer show nothing. Shape: safe
// stack, SCTBench, after a posting of D. Vyukov.
#include <assert.h>
#include "cells.h"
#define ELEMENTS 3
static struct cell head = CELL(0), count = CELL(ELEMENTS);
static struct cell next[ELEMENTS] = {CELL(1), CELL(2), CELL(-1)};
static int holder[ELEMENTS];
static int pop(void) {
    for (int tries = 0; tries < 2 && load(&count) > 1; tries++) {
        int first = load(&head);
        int second = exchange(&next[first], -1);
        if (second >= 0) {
            if (compare_exchange(&head, first, second)) {
                add(&count, -1);
                return first;
            }
            exchange(&next[first], second);
        }
    }
    return -1;
}
static void push(int element) {
    int first = load(&head);
    do
        store(&next[element], first);
    while (!compare_exchange(&head, first, element) && ((first = load(&head)), 1));
    add(&count, 1);
}
static void *work(void *arg) {
    int me = (int)(long)arg;
    for (int i = 0; i < 2; i++) {
        int element = pop();
        if (element < 0)
            continue;
        assert(holder[element] == 0);
        holder[element] = me;
        load(&count); // the holder uses the element for a while
        assert(holder[element] == me);
        holder[element] = 0;
        push(element);
    }
    return 0;
}
int main(void) {
    pthread_t t[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&t[i], 0, work, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
    return 0;
}
