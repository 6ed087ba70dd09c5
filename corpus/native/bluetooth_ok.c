// The operation is counted before the test. The correct twin of bluetooth.c.
#define COUNTS_FIRST
#include "bluetooth.c"
