// Everybody uses the same lock. The correct twin of wronglock.c.
#define RIGHT
#include "wronglock.c"
