// The consumer relies only on what the queue guarantees. The correct twin of queue.c.
#define ORDERED
#include "queue.c"
