/* What is due when: a binary heap of deadlines, each item knowing its place so that it moves and leaves in O(log n). */
#ifndef REDLOCK_GROUP_SCHEDULE_H
#define REDLOCK_GROUP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* Embed it; zeroed means "not scheduled". */
struct redlock_due {
    uint32_t place; /* in the heap, from 1; 0 when it is not there */
};

struct redlock_schedule {
    struct redlock_schedule_entry {
        int64_t when_ns;
        struct redlock_due *due;
    } * heap; /* from index 1 */
    uint32_t count;
    uint32_t reserved;
    uint32_t capacity;
};

/* Makes room for one more item, so that setting its time can never fail; false without memory. */
bool redlock_schedule_reserve(struct redlock_schedule *schedule);
/* Gives back the room of an item; takes it out if it is scheduled. */
void redlock_schedule_unreserve(struct redlock_schedule *schedule, struct redlock_due *due);

/* REDLOCK_NEVER_NS takes the item out. */
void redlock_schedule_set(struct redlock_schedule *schedule, struct redlock_due *due, int64_t when_ns);

/* The earliest time, REDLOCK_NEVER_NS when nothing is scheduled. */
int64_t redlock_schedule_first_ns(const struct redlock_schedule *schedule);
/* Takes out and returns the earliest item if it is due at now_ns, else NULL. */
struct redlock_due *redlock_schedule_pop(struct redlock_schedule *schedule, int64_t now_ns);

void redlock_schedule_clear(struct redlock_schedule *schedule);

#endif
