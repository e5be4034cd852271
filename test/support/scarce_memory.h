/* Memory that runs out on demand. A program that links redlock_scarce_memory gets these malloc(),
 * calloc() and realloc() by the linker's hand. One thread at a time. */
#ifndef TEST_SUPPORT_SCARCE_MEMORY_H
#define TEST_SUPPORT_SCARCE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct scarce_memory {
    bool armed;
    long count, fails; /* allocations while armed; the one that fails, from 1 */
};

extern struct scarce_memory memory;

/* Arms it: of the allocations from now on, this one fails. */
void memory_fails_at(long number);

/* What malloc() and realloc() are then, for libraries that take functions. */
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *old, size_t size);
/* Is not counted, and never fails on demand. */
void *__real_malloc(size_t size);

#endif
