// Writes output without end.
#include <stdio.h>
int main(void) {
    for (;;)
        puts("again and again and again and again and again and again and again");
}
