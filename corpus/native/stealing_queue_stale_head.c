// Under the lock the owner decides by the head that it saw before: an element that the thief has
// given back is lost. A variant of
// stealing_queue.c.
#define STALE_HEAD
#include "stealing_queue.c"
