/* The requests whose reply is still expected. */
#include "inflight.h"

#include <assert.h>
#include <stdlib.h>

#define ROOM_MIN 64

static bool grow(struct redlock_inflight *inflight) {
    size_t room = inflight->room == 0 ? ROOM_MIN : inflight->room * 2;
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

bool redlock_inflight_push(struct redlock_inflight *inflight, const struct redlock_inflight_entry *entry) {
    if (inflight->count == inflight->room && !grow(inflight)) {
        return false;
    }
    inflight->count++;
    *redlock_inflight_at(inflight, inflight->count - 1) = *entry;
    return true;
}

bool redlock_inflight_pop(struct redlock_inflight *inflight, struct redlock_inflight_entry *entry) {
    assert(inflight->count > 0);
    *entry = *redlock_inflight_at(inflight, 0);
    inflight->head = (inflight->head + 1) & (inflight->room - 1);
    inflight->count--;
    if (inflight->expired == 0) {
        return true;
    }
    inflight->expired--;
    return false;
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
