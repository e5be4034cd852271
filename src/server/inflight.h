/* The requests that still wait for a reply, in the order of replies and of deadlines (R7). */
#ifndef REDLOCK_SERVER_INFLIGHT_H
#define REDLOCK_SERVER_INFLIGHT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REDLOCK_INFLIGHT_MAX   65536
#define REDLOCK_INFLIGHT_AHEAD 4

struct redlock_inflight_entry {
    void *owner;
    uint64_t position; /* of its first byte in the outbox */
    int64_t queued_ns;
    uint32_t round;
    uint16_t reply_kind; /* as given to redlock_node_send() */
    bool own;            /* our PING, SCRIPT LOAD or AUTH, without an owner to answer */
};

/* All zero is an empty queue. */
struct redlock_inflight {
    struct redlock_inflight_entry *entries;
    size_t room; /* a power of two */
    size_t head, count;
    size_t peak;    /* the largest count in this round through the room */
    size_t expired; /* the first `expired` entries have timed out */
};

static inline struct redlock_inflight_entry *redlock_inflight_at(const struct redlock_inflight *inflight,
                                                                 size_t index) {
    return &inflight->entries[(inflight->head + index) & (inflight->room - 1)];
}

/* The oldest; there is one. */
static inline struct redlock_inflight_entry *redlock_inflight_first(const struct redlock_inflight *inflight) {
    assert(inflight->count > 0);
    return &inflight->entries[inflight->head];
}

/* Makes room for one more. Returns false without memory. Only for redlock_inflight_push(). */
bool redlock_inflight_grow(struct redlock_inflight *inflight);

/* Shrinks the queue after a burst, if a round through its room took little of it. Only for
 * redlock_inflight_pop(). */
void redlock_inflight_give_back(struct redlock_inflight *inflight) __attribute__((cold));

/* Returns the copy in the queue; NULL without memory. */
static inline struct redlock_inflight_entry *redlock_inflight_push(struct redlock_inflight *inflight,
                                                                   const struct redlock_inflight_entry *entry) {
    if (inflight->count == inflight->room && !redlock_inflight_grow(inflight)) {
        return NULL;
    }
    struct redlock_inflight_entry *queued = redlock_inflight_at(inflight, inflight->count++);
    /* One by one: a wide read of what was just written waits for the write. */
    queued->owner = entry->owner;
    queued->position = entry->position;
    queued->queued_ns = entry->queued_ns;
    queued->round = entry->round;
    queued->reply_kind = entry->reply_kind;
    queued->own = entry->own;
    return queued;
}

/* Whether the oldest entry is the last in this round through the room. */
static inline bool redlock_inflight_ends_round(const struct redlock_inflight *inflight) {
    return ((inflight->head + 1) & (inflight->room - 1)) == 0;
}

/* Removes the oldest entry. */
static inline void redlock_inflight_drop(struct redlock_inflight *inflight) {
    assert(inflight->count > 0);
    inflight->peak = inflight->count > inflight->peak ? inflight->count : inflight->peak;
    inflight->head = (inflight->head + 1) & (inflight->room - 1);
    inflight->count--;
    if (inflight->head == 0) {
        redlock_inflight_give_back(inflight);
    }
}

/* Likewise. Returns true if it has not timed out. */
static inline bool redlock_inflight_pop(struct redlock_inflight *inflight, struct redlock_inflight_entry *entry) {
    *entry = inflight->entries[inflight->head];
    redlock_inflight_drop(inflight);
    if (inflight->expired == 0) {
        return true;
    }
    inflight->expired--;
    return false;
}

/* Fetches what its vote uses of the owner of a later entry: with many owners, it is in no cache. If
 * gcc does not inline it, it takes it for a function without an effect. */
__attribute__((always_inline)) static inline void redlock_inflight_fetch_ahead(const struct redlock_inflight *inflight,
                                                                               size_t votes_at) {
    if (inflight->count > REDLOCK_INFLIGHT_AHEAD) {
        const uintptr_t owner = (uintptr_t)redlock_inflight_at(inflight, REDLOCK_INFLIGHT_AHEAD)->owner;
        __builtin_prefetch((const void *)owner, 1);
        __builtin_prefetch((const void *)(owner + 64), 1);
        __builtin_prefetch((const void *)(owner + votes_at), 1);
    }
}

/* Puts the entry that was popped last before the others: its request has one more reply. `in_time`:
 * as redlock_inflight_pop() said. Returns false without memory, which cannot be right after it. */
bool redlock_inflight_put_back(struct redlock_inflight *inflight, const struct redlock_inflight_entry *entry,
                               bool in_time);

/* Removes `count` entries from `index` on. Their `size` bytes were withdrawn from the outbox. */
void redlock_inflight_withdraw(struct redlock_inflight *inflight, size_t index, size_t count, uint64_t size);

void redlock_inflight_clear(struct redlock_inflight *inflight);

#endif
