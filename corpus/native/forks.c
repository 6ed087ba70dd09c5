// Creates a process, which is not supported.
#include <unistd.h>
int main(void) {
    return fork() < 0;
}
