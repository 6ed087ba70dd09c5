// The receiver counts elements. The correct twin of circular_buffer.c.
#define COUNTS_ELEMENTS
#include "circular_buffer.c"
