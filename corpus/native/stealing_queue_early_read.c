// The owner reads the head before it announces its pop: both take the last element. A variant of
// stealing_queue.c.
#define EARLY_READ
#include "stealing_queue.c"
