// The consumer consumes. The correct twin of sync.c.
#define CONSUMES
#include "sync.c"
