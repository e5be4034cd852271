/* Bytes that wait for a write. */
#include "server/outbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN 4096

/* The bytes may hold a password. */
static void release(struct redlock_outbox *outbox) {
    if (outbox->bytes != NULL) {
        explicit_bzero(outbox->bytes, outbox->room);
    }
    free(outbox->bytes);
}

bool redlock_outbox_make_room(struct redlock_outbox *outbox, size_t size) {
    assert(outbox->head <= outbox->tail && outbox->tail <= outbox->room);
    size_t held = redlock_outbox_size(outbox);
    if (held + size >= outbox->room / 2) {
        size_t room = outbox->room < ROOM_MIN ? ROOM_MIN : outbox->room;
        while (room < 2 * (held + size)) {
            room *= 2;
        }
        char *bytes = malloc(room);
        if (bytes == NULL) {
            return false;
        }
        if (held > 0) {
            memcpy(bytes, outbox->bytes + outbox->head, held);
        }
        release(outbox);
        outbox->bytes = bytes;
        outbox->room = room;
    } else {
        /* At least half of the room is free at the front, so moving is cheap. */
        memmove(outbox->bytes, outbox->bytes + outbox->head, held);
    }
    outbox->begin = outbox->written;
    outbox->head = 0;
    outbox->tail = held;
    return true;
}

void redlock_outbox_give_back(struct redlock_outbox *outbox) {
    assert(redlock_outbox_size(outbox) == 0);
    if (outbox->room > REDLOCK_OUTBOX_IDLE_MAX || (outbox->room > ROOM_MIN && outbox->room / 8 > outbox->peak)) {
        release(outbox);
        outbox->bytes = NULL;
        outbox->room = 0;
    }
    outbox->peak = 0;
    outbox->emptied = 0;
}

void redlock_outbox_withdraw(struct redlock_outbox *outbox, uint64_t position, size_t size) {
    assert(position >= outbox->written && position + size <= redlock_outbox_end(outbox));
    char *at = outbox->bytes + outbox->head + (position - outbox->written);
    memmove(at, at + size, (size_t)(outbox->bytes + outbox->tail - (at + size)));
    outbox->tail -= size;
}

void redlock_outbox_wipe(struct redlock_outbox *outbox) {
    assert(outbox->head <= outbox->tail && outbox->tail <= outbox->room);
    if (outbox->bytes != NULL) {
        explicit_bzero(outbox->bytes, outbox->head);
        explicit_bzero(outbox->bytes + outbox->tail, outbox->room - outbox->tail);
    }
}

void redlock_outbox_clear(struct redlock_outbox *outbox) {
    release(outbox);
    *outbox = (struct redlock_outbox){0};
}
