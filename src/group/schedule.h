/* A binary heap of deadlines. Each item knows its place, so it moves in O(log n). One that leaves
 * only empties its place. */
#ifndef REDLOCK_GROUP_SCHEDULE_H
#define REDLOCK_GROUP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/time.h"

/* Embed it. All zero means "not scheduled". */
struct redlock_due {
    uint32_t place; /* the place in the heap, from 1; 0: not scheduled */
};

struct redlock_schedule {
    struct redlock_schedule_entry {
        int64_t when_ns;
        struct redlock_due *due; /* NULL: it was taken out */
    } * heap;                    /* from index 1 */
    uint32_t count;              /* of places, empty ones too: at most as many as it has room for */
    uint32_t reserved;
    uint32_t capacity;
};

/* Makes room for one more item, so that redlock_schedule_set() cannot fail. False if there is no
 * memory. */
bool redlock_schedule_reserve(struct redlock_schedule *schedule);
/* Gives the room of an item back, and takes the item out if it is scheduled. */
void redlock_schedule_unreserve(struct redlock_schedule *schedule, struct redlock_due *due);

/* REDLOCK_NEVER_NS takes the item out. */
void redlock_schedule_set(struct redlock_schedule *schedule, struct redlock_due *due, int64_t when_ns);

/* The earliest time, maybe of an item that was taken out since redlock_schedule_pop() found none
 * due; REDLOCK_NEVER_NS if nothing is scheduled. */
static inline int64_t redlock_schedule_first_ns(const struct redlock_schedule *schedule) {
    return schedule->count ? schedule->heap[1].when_ns : REDLOCK_NEVER_NS;
}
/* Takes out and returns the earliest item if it is due at now_ns, else NULL. */
struct redlock_due *redlock_schedule_pop(struct redlock_schedule *schedule, int64_t now_ns);

void redlock_schedule_clear(struct redlock_schedule *schedule);

#endif
