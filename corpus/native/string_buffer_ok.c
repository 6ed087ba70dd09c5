// Both buffers are locked during the whole `append`. The correct twin of string_buffer.c.
#define HOLDS_BOTH
#include "string_buffer.c"
