/* Memory that runs out on demand. */
#include "scarce_memory.h"

struct scarce_memory memory;

void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static bool fails_now(void) {
    return memory.armed && ++memory.count == memory.fails;
}

void *__wrap_malloc(size_t size) {
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    return fails_now() ? NULL : __real_realloc(old, size);
}

void memory_fails_at(long number) {
    memory = (struct scarce_memory){.armed = true, .fails = number};
}
