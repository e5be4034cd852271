/* Lists in memory. */
#include "faults/lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void chaos_no_memory(size_t bytes) {
    (void)fflush(stdout); /* what was said before stands */
    fprintf(stderr, "redlock-chaos: out of memory: %zu bytes were asked for; what was written down is kept\n", bytes);
    _Exit(CHAOS_STATUS_NO_MEMORY);
}

void *chaos_allocate(size_t count, size_t size) {
    void *list = calloc(count == 0 ? 1 : count, size);
    if (list == NULL) {
        chaos_no_memory(count * size);
    }
    return list;
}

char *chaos_copy(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(chaos_allocate(size, 1), text, size);
}

void *chaos_add(void *list, size_t *count, const void *item, size_t size) {
    void *items;
    memcpy(&items, list, sizeof items);
    /* Full at each power of two. */
    if ((*count & (*count - 1)) == 0) {
        size_t room = (*count == 0 ? 1 : *count * 2) * size;
        items = realloc(items, room);
        if (items == NULL) {
            chaos_no_memory(room);
        }
        memcpy(list, &items, sizeof items);
    }
    return memcpy((char *)items + (*count)++ * size, item, size);
}

void chaos_sort(void *list, size_t count, size_t size, int (*order)(const void *, const void *)) {
    if (count > 0) {
        qsort(list, count, size, order);
    }
}

void *chaos_sorted(const void *list, size_t count, size_t size, int (*order)(const void *, const void *)) {
    const void **items = chaos_allocate(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        items[i] = (const char *)list + i * size;
    }
    qsort(items, count, sizeof *items, order);
    return items;
}

size_t chaos_count_before(const void *list, size_t count, size_t size, const void *sought,
                          int (*order)(const void *, const void *)) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order((const char *)list + middle * size, sought) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
