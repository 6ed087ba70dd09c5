// Variables whose accesses are calls: each one locks the mutex of its variable, so that threads can
// be switched at every access also where atomic instructions are not scheduling points.
#include <pthread.h>
struct cell {
    pthread_mutex_t lock;
    int value;
};
#define CELL(value) {PTHREAD_MUTEX_INITIALIZER, value}
static inline int load(struct cell *cell) {
    pthread_mutex_lock(&cell->lock);
    int value = cell->value;
    pthread_mutex_unlock(&cell->lock);
    return value;
}
static inline void store(struct cell *cell, int value) {
    pthread_mutex_lock(&cell->lock);
    cell->value = value;
    pthread_mutex_unlock(&cell->lock);
}
static inline int exchange(struct cell *cell, int value) {
    pthread_mutex_lock(&cell->lock);
    int before = cell->value;
    cell->value = value;
    pthread_mutex_unlock(&cell->lock);
    return before;
}
static inline int add(struct cell *cell, int by) {
    pthread_mutex_lock(&cell->lock);
    int before = cell->value;
    cell->value += by;
    pthread_mutex_unlock(&cell->lock);
    return before;
}
static inline int compare_exchange(struct cell *cell, int expected, int value) {
    pthread_mutex_lock(&cell->lock);
    int equal = cell->value == expected;
    if (equal)
        cell->value = value;
    pthread_mutex_unlock(&cell->lock);
    return equal;
}
