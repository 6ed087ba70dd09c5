// Both locks are held during both accesses. The correct twin of reorder.c.
#define TOGETHER
#include "reorder.c"
