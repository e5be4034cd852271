/* Lists in memory, for what runs before the nodes do or after they have ended. Without memory these
 * functions end the program, with a sentence and CHAOS_STATUS_NO_MEMORY. */
#ifndef CHAOS_LISTS_H
#define CHAOS_LISTS_H

#include <stddef.h>
#include <stdint.h>

enum { CHAOS_STATUS_NO_MEMORY = 3 }; /* CHAOS_EXIT_BROKEN of the conductor */

_Noreturn void chaos_no_memory(size_t bytes);
/* Room for `count` items, zeroed; one of them for 0. To be freed. */
void *chaos_allocate(size_t count, size_t size);
/* To be freed. */
char *chaos_copy(const char *text);

/* Adds a copy of the item at the end of a list, and returns where it is. `list` points to the
 * pointer to its first; it was made by this function alone. */
void *chaos_add(void *list, size_t *count, const void *item, size_t size);
/* qsort(), also of a list that is NULL. */
void chaos_sort(void *list, size_t count, size_t size, int (*order)(const void *, const void *));
/* Pointers to the items of a list, sorted; to be freed. */
void *chaos_sorted(const void *list, size_t count, size_t size, int (*order)(const void *, const void *));
/* How many items at the begin of a list sorted like this come before what is sought, an item like
 * them. */
size_t chaos_count_before(const void *list, size_t count, size_t size, const void *sought,
                          int (*order)(const void *, const void *));

static inline int64_t chaos_least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t chaos_most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Goes through a list, which may be NULL. */
#define CHAOS_EACH(type, item, list, count) for (type *item = (list); item != NULL && item < (list) + (count); item++)

/* For qsort(): by a number; by two; by what comes next where the first says nothing. */
static inline int chaos_order(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static inline int chaos_order_by(int64_t a, int64_t b, int64_t next_a, int64_t next_b) {
    return a != b ? chaos_order(a, b) : chaos_order(next_a, next_b);
}

static inline int chaos_order_then(int order, int next) {
    return order != 0 ? order : next;
}

/* Defines an order of structs, of which x and y are two; and one of pointers to structs. */
#define CHAOS_ORDER(name, type, order)                                                                                 \
    static int name(const void *a, const void *b) {                                                                    \
        const struct type *x = a, *y = b;                                                                              \
        return order;                                                                                                  \
    }
#define CHAOS_ORDER_OF(name, type, order)                                                                              \
    static int name(const void *a, const void *b) {                                                                    \
        const struct type *x = *(const struct type *const *)a, *y = *(const struct type *const *)b;                    \
        return order;                                                                                                  \
    }

#endif
