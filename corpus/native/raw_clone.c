// Creates a process by a system call without the C library.
#include "raw.h"
int main(void) { return raw(SYS_clone, 17, 0, 0) < 0; }
