/* A binary heap of deadlines. */
#include "group/schedule.h"

#include <assert.h>
#include <stdlib.h>

#include "core/time.h"

static void put(struct redlock_schedule *schedule, uint32_t place, struct redlock_schedule_entry entry) {
    schedule->heap[place] = entry;
    entry.due->place = place;
}

static void sift_up(struct redlock_schedule *schedule, uint32_t place) {
    const struct redlock_schedule_entry entry = schedule->heap[place];
    while (place > 1 && schedule->heap[place / 2].when_ns > entry.when_ns) {
        put(schedule, place, schedule->heap[place / 2]);
        place /= 2;
    }
    put(schedule, place, entry);
}

static void sift_down(struct redlock_schedule *schedule, uint32_t place) {
    const struct redlock_schedule_entry entry = schedule->heap[place];
    for (;;) {
        uint32_t child = 2 * place;
        if (child > schedule->count) {
            break;
        }
        if (child < schedule->count && schedule->heap[child + 1].when_ns < schedule->heap[child].when_ns) {
            child++;
        }
        if (schedule->heap[child].when_ns >= entry.when_ns) {
            break;
        }
        put(schedule, place, schedule->heap[child]);
        place = child;
    }
    put(schedule, place, entry);
}

static void take_out(struct redlock_schedule *schedule, struct redlock_due *due) {
    const uint32_t place = due->place;
    assert(place >= 1 && place <= schedule->count && schedule->heap[place].due == due);
    const struct redlock_schedule_entry last = schedule->heap[schedule->count--];
    due->place = 0;
    if (last.due == due) {
        return;
    }
    put(schedule, place, last);
    sift_up(schedule, place);
    sift_down(schedule, last.due->place);
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
        put(schedule, ++schedule->count, (struct redlock_schedule_entry){.when_ns = when_ns, .due = due});
    } else {
        schedule->heap[due->place].when_ns = when_ns;
    }
    sift_up(schedule, due->place);
    sift_down(schedule, due->place);
}

int64_t redlock_schedule_first_ns(const struct redlock_schedule *schedule) {
    return schedule->count ? schedule->heap[1].when_ns : REDLOCK_NEVER_NS;
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
