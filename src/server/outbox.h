/* Bytes that wait for a write, and how many were written: FAILED or UNKNOWN depends on it (R4). */
#ifndef REDLOCK_SERVER_OUTBOX_H
#define REDLOCK_SERVER_OUTBOX_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define REDLOCK_OUTBOX_SIZE_MAX   ((size_t)64 * 1024 * 1024)
#define REDLOCK_OUTBOX_IDLE_MAX   ((size_t)4 * 1024 * 1024) /* what an empty one may keep */
#define REDLOCK_OUTBOX_CALM_AFTER 1024                      /* times that it ran empty */

/* All zero is an empty outbox. */
struct redlock_outbox {
    char *bytes;
    size_t head, tail, room;
    uint64_t begin;   /* the stream position of bytes[0] */
    uint64_t written; /* since the last clear: the stream position of bytes[head] */
    size_t peak;      /* the most that waited at once since the last give-back */
    uint32_t emptied; /* how often it ran empty since then */
};

static inline size_t redlock_outbox_size(const struct redlock_outbox *outbox) {
    return outbox->tail - outbox->head;
}

/* Makes room for `size` bytes at the end. Returns false without memory. Only for
 * redlock_outbox_append(). */
bool redlock_outbox_make_room(struct redlock_outbox *outbox, size_t size);

/* Returns false without memory, or over the limit. */
static inline bool redlock_outbox_append(struct redlock_outbox *outbox, const char *bytes, size_t size) {
    if (redlock_outbox_size(outbox) + size > REDLOCK_OUTBOX_SIZE_MAX ||
        (outbox->room - outbox->tail <= size && !redlock_outbox_make_room(outbox, size))) {
        return false;
    }
    memcpy(outbox->bytes + outbox->tail, bytes, size);
    outbox->tail += size;
    return true;
}

/* The stream position of the next byte to append. */
static inline uint64_t redlock_outbox_end(const struct redlock_outbox *outbox) {
    return outbox->begin + outbox->tail;
}

/* Shrinks an empty outbox after a burst. Only for redlock_outbox_wrote(). */
void redlock_outbox_give_back(struct redlock_outbox *outbox);

/* `size` bytes were written. */
static inline void redlock_outbox_wrote(struct redlock_outbox *outbox, size_t size) {
    const size_t waited = redlock_outbox_size(outbox);
    assert(size <= waited);
    outbox->peak = waited > outbox->peak ? waited : outbox->peak;
    outbox->head += size;
    outbox->written += size;
    if (outbox->head < outbox->tail) {
        return;
    }
    outbox->begin = outbox->written;
    outbox->head = outbox->tail = 0;
    outbox->emptied++;
    if (outbox->room > REDLOCK_OUTBOX_IDLE_MAX || outbox->emptied == REDLOCK_OUTBOX_CALM_AFTER) {
        redlock_outbox_give_back(outbox);
    }
}

/* Removes `size` bytes at a position that is not written yet. */
void redlock_outbox_withdraw(struct redlock_outbox *outbox, uint64_t position, size_t size);

/* Overwrites the bytes that were written already or withdrawn: a password was among them. */
void redlock_outbox_wipe(struct redlock_outbox *outbox);

/* Overwrites all bytes, since they may hold a password, drops them, and restarts at position 0. */
void redlock_outbox_clear(struct redlock_outbox *outbox);

#endif
