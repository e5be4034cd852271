/* A binary heap of deadlines. */
#include "group/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "core/time.h"

static void put(struct redlock_schedule *schedule, uint32_t place, struct redlock_schedule_entry entry) {
    schedule->heap[place] = entry;
    entry.due->place = place;
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

static void take_out(struct redlock_schedule *schedule, struct redlock_due *due) {
    const uint32_t place = due->place;
    assert(place >= 1 && place <= schedule->count && schedule->heap[place].due == due);
    const struct redlock_schedule_entry last = schedule->heap[schedule->count--];
    due->place = 0;
    if (last.due != due) {
        settle(schedule, place, last);
    }
}

bool redlock_schedule_reserve(struct redlock_schedule *schedule) {
    if (schedule->reserved + 2 > schedule->capacity) {
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
        assert(schedule->count < schedule->reserved);
        due->place = ++schedule->count;
    }
    settle(schedule, due->place, (struct redlock_schedule_entry){.when_ns = when_ns, .due = due});
}

struct redlock_due *redlock_schedule_pop(struct redlock_schedule *schedule, int64_t now_ns) {
    if (redlock_schedule_first_ns(schedule) > now_ns || !schedule->count) {
        return NULL;
    }
    struct redlock_due *due = schedule->heap[1].due;
    take_out(schedule, due);
    return due;
}

void redlock_schedule_clear(struct redlock_schedule *schedule) {
    free(schedule->heap);
    *schedule = (struct redlock_schedule){0};
}
