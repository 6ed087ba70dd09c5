// The thief takes no lock: it gives back, or takes, what the owner is just settling. A variant of
// stealing_queue.c.
#define NO_LOCK
#include "stealing_queue.c"
