// The popper looks whether there is an element. The correct twin of stack.c.
#define CHECKS
#include "stack.c"
