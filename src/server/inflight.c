/* The requests that still wait for a reply. */
#include "server/inflight.h"

#include <assert.h>
#include <stdlib.h>

#define ROOM_MIN 64

static bool set_room(struct redlock_inflight *inflight, size_t room) {
    assert(room > 0 && (room & (room - 1)) == 0 && inflight->count <= room);
    struct redlock_inflight_entry *entries = malloc(room * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < inflight->count; i++) {
        entries[i] = *redlock_inflight_at(inflight, i);
    }
    free(inflight->entries);
    inflight->entries = entries;
    inflight->room = room;
    inflight->head = 0;
    return true;
}

bool redlock_inflight_grow(struct redlock_inflight *inflight) {
    assert(inflight->count == inflight->room);
    return set_room(inflight, inflight->room == 0 ? ROOM_MIN : inflight->room * 2);
}

void redlock_inflight_give_back(struct redlock_inflight *inflight) {
    if (inflight->room > ROOM_MIN && inflight->room / 8 > inflight->peak) {
        (void)set_room(inflight, inflight->room / 4); /* without memory it keeps its size */
    }
    inflight->peak = 0;
}

void redlock_inflight_withdraw(struct redlock_inflight *inflight, size_t index, size_t count, uint64_t size) {
    assert(index + count <= inflight->count && index >= inflight->expired);
    for (size_t i = index + count; i < inflight->count; i++) {
        struct redlock_inflight_entry *to = redlock_inflight_at(inflight, i - count);
        *to = *redlock_inflight_at(inflight, i);
        to->position -= size;
    }
    inflight->count -= count;
}

void redlock_inflight_clear(struct redlock_inflight *inflight) {
    free(inflight->entries);
    *inflight = (struct redlock_inflight){0};
}

bool redlock_inflight_put_back(struct redlock_inflight *inflight, const struct redlock_inflight_entry *entry,
                               bool in_time) {
    if (inflight->count == inflight->room && !redlock_inflight_grow(inflight)) {
        return false;
    }
    inflight->head = (inflight->head - 1) & (inflight->room - 1);
    inflight->count++;
    inflight->expired += !in_time;
    *redlock_inflight_at(inflight, 0) = *entry;
    return true;
}
