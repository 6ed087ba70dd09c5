// The second lock is held during both changes. The correct twin of twostage.c.
#define NESTED
#include "twostage.c"
