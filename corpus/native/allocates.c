// All functions that allocate, in two threads: what they return is aligned, zero where it has to be,
// and keeps its contents.
#include <assert.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static void *work(void *arg) {
    int *numbers = malloc(10 * sizeof *numbers);
    for (int i = 0; i < 10; i++)
        numbers[i] = i;
    numbers = realloc(numbers, 1000000 * sizeof *numbers);
    numbers = reallocarray(numbers, 5, sizeof *numbers);
    assert(numbers[4] == 4 && malloc_usable_size(numbers) >= 5 * sizeof *numbers);
    char *zeros = calloc(300, 7);
    for (int i = 0; i < 2100; i++)
        assert(zeros[i] == 0);
    void *page;
    assert(posix_memalign(&page, 4096, 10) == 0 && (uintptr_t)page % 4096 == 0);
    void *line = aligned_alloc(64, 128);
    assert((uintptr_t)line % 64 == 0);
    char *copy = strdup("copy");
    assert(strcmp(copy, "copy") == 0);
    void *none = malloc(0), *other = malloc(0);
    assert(none != other);
    free(numbers), free(zeros), free(page), free(line), free(copy), free(none), free(other);
    free(0);
    return arg;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    work(0);
    pthread_join(t, 0);
    return 0;
}
