// Replaces itself by another program.
#include <unistd.h>

int main(void) {
    execl("/bin/true", "true", "more", "than", "five", "arguments", (char *)0);
    return 1;
}
