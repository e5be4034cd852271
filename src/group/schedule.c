/* A binary heap of deadlines. */
#include "group/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "core/time.h"

static void put(struct redlock_schedule *schedule, uint32_t place, struct redlock_schedule_entry entry) {
    schedule->heap[place] = entry;
    if (entry.due) {
        entry.due->place = place;
    }
}

/* Puts it there, or as far up or down from there as it belongs. */
static void settle(struct redlock_schedule *schedule, uint32_t place, struct redlock_schedule_entry entry) {
    const struct redlock_schedule_entry *heap = schedule->heap;
    for (; place > 1 && heap[place / 2].when_ns > entry.when_ns; place /= 2) {
        put(schedule, place, heap[place / 2]);
    }
    for (uint32_t child = 2 * place; child <= schedule->count; child = 2 * place) {
        child += child < schedule->count && heap[child + 1].when_ns < heap[child].when_ns;
        if (heap[child].when_ns >= entry.when_ns) {
            break;
        }
        put(schedule, place, heap[child]);
        place = child;
    }
    put(schedule, place, entry);
}

/* To fill its place, about ten other items would move, and each of them knows its place. */
static void take_out(struct redlock_schedule *schedule, struct redlock_due *due) {
    assert(due->place >= 1 && due->place <= schedule->count && schedule->heap[due->place].due == due);
    schedule->heap[due->place].due = NULL;
    due->place = 0;
    while (schedule->count > 0 && !schedule->heap[schedule->count].due) {
        schedule->count--;
    }
}

static void drop_first(struct redlock_schedule *schedule) {
    const struct redlock_schedule_entry last = schedule->heap[schedule->count--];
    if (schedule->count > 0) {
        settle(schedule, 1, last);
    }
}

/* Drops the places of all items that were taken out. */
static void compact(struct redlock_schedule *schedule) {
    const uint32_t count = schedule->count;
    schedule->count = 0;
    for (uint32_t i = 1; i <= count; i++) {
        const struct redlock_schedule_entry entry = schedule->heap[i];
        if (entry.due) {
            settle(schedule, ++schedule->count, entry);
        }
    }
}

bool redlock_schedule_reserve(struct redlock_schedule *schedule) {
    if (2 * (schedule->reserved + 2) > schedule->capacity) {
        const uint32_t capacity = schedule->capacity ? 2 * schedule->capacity : 64;
        struct redlock_schedule_entry *heap = realloc(schedule->heap, capacity * sizeof *heap);
        if (!heap) {
            return false;
        }
        schedule->heap = heap;
        schedule->capacity = capacity;
    }
    schedule->reserved++;
    return true;
}

void redlock_schedule_unreserve(struct redlock_schedule *schedule, struct redlock_due *due) {
    assert(schedule->reserved > 0);
    if (due->place) {
        take_out(schedule, due);
    }
    schedule->reserved--;
}

void redlock_schedule_set(struct redlock_schedule *schedule, struct redlock_due *due, int64_t when_ns) {
    if (due->place && schedule->heap[due->place].when_ns == when_ns) {
        return;
    }
    if (when_ns == REDLOCK_NEVER_NS) {
        if (due->place) {
            take_out(schedule, due);
        }
        return;
    }
    if (!due->place) {
        if (schedule->count + 1 == schedule->capacity) {
            compact(schedule); /* half of it, or more, was taken out */
        }
        assert(schedule->count + 1 < schedule->capacity);
        due->place = ++schedule->count;
    }
    settle(schedule, due->place, (struct redlock_schedule_entry){.when_ns = when_ns, .due = due});
}

struct redlock_due *redlock_schedule_pop(struct redlock_schedule *schedule, int64_t now_ns) {
    while (schedule->count > 0 && !schedule->heap[1].due) {
        drop_first(schedule);
    }
    if (schedule->count == 0 || schedule->heap[1].when_ns > now_ns) {
        return NULL;
    }
    struct redlock_due *due = schedule->heap[1].due;
    due->place = 0;
    drop_first(schedule);
    return due;
}

void redlock_schedule_clear(struct redlock_schedule *schedule) {
    free(schedule->heap);
    *schedule = (struct redlock_schedule){0};
}
