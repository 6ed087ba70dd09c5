// Semaphores pass the turn along the ring. The correct twin of token_ring.c.
#define ORDERED
#include "token_ring.c"
