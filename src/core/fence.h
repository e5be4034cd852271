/* Fencing tokens: the number that an attempt proposes, whether a quorum accepted it, and the number
 * to write back if not. */
#ifndef REDLOCK_CORE_FENCE_H
#define REDLOCK_CORE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/quorum.h"

/*
 * Each node keeps a counter for each resource. A counter never falls. The token of a lease is a
 * number to which a quorum of nodes raised their counters, each from below and in one atomic step.
 * Two quorums share a node, so two tokens differ, and a lease that began after another one had its
 * token gets a larger token. This argument uses no clock and no ttl.
 *
 * A number is microseconds of the wall clock × 1000 + the client's low digits: close to what others
 * propose, but unique.
 *
 * One who reads takes a number of others who read, if it is no lower than its clock, or else the
 * next one with the digits of those who do. So it is above the numbers of all who wrote before, and
 * the same for those who read together (docs/protocols.md, "Shared locks").
 */
#define REDLOCK_FENCE_CLIENTS 1000 /* low digits: a client that writes has some of 0 to 998, */
#define REDLOCK_FENCE_READER  999  /* and all who read have these */
#define REDLOCK_FENCE_DIGITS  20   /* fixed width, so that nodes can compare them as strings */
#define REDLOCK_FENCE_MAX     ((uint64_t)INT64_MAX)

/*
 * A lease is safe with any number that a quorum accepted, so a client need not believe any counter.
 * It follows a counter that its own clock explains. Any other counter may be a lie: the client
 * follows it only if the other nodes are fewer than a quorum, and then the lowest first. A node
 * stores no number that is more than an hour (with an expiry) or a day ahead of its own clock. So
 * nodes store every counter that a client believes, if their clocks and its own differ by less than
 * half an hour.
 */
#define REDLOCK_FENCE_BELIEVED_US (INT64_C(30) * 60 * 1000000)

struct redlock_fence {
    /* The proposal, or the number being written back; the lease's token once a quorum accepted
     * it. */
    uint64_t token;
    /* The highest counter of this resource that a node sent and the clock explains, in any attempt
     * of this request. */
    uint64_t seen;
    uint64_t far_least;      /* the lowest counter of `far` */
    redlock_nodes accepted;  /* nodes that raised their counter to `token` */
    redlock_nodes not_below; /* in this round, nodes that did not: their counter was not below it */
    redlock_nodes far;       /* of these, the nodes whose counter the clock does not explain */
    uint16_t client;         /* low digits */
    bool reads;              /* these are REDLOCK_FENCE_READER, whoever the client is */
};

/* The low digits of a client, of random ones. */
static inline uint16_t redlock_fence_client(uint16_t drawn) {
    return drawn % REDLOCK_FENCE_READER;
}

/*
 * Sets the token of an attempt: the number of the wall clock, or the next number above `seen` if
 * that is larger. If a node accepted the last token and the clock explains that token, the new one
 * is above it, too. Never 0. A wall clock before 1970 or after 2200 counts as 0. Returns false and
 * changes nothing if there is no such number (REDLOCK_FENCE_MAX).
 */
bool redlock_fence_propose(struct redlock_fence *fence, int64_t wall_us);

/* Sets the token of the slow path. It is also above the last token and, with `follow`, above the
 * lowest counter of `far`. Both functions clear `accepted` and `far`. */
bool redlock_fence_raise(struct redlock_fence *fence, int64_t wall_us, bool follow);

/* Whether the counter is ahead of the clock by more than REDLOCK_FENCE_BELIEVED_US. */
bool redlock_fence_is_far(uint64_t counter, int64_t wall_us);

/*
 * Clients' clocks differ a little. A counter that is slightly ahead of our clock comes from a
 * client whose clock is ahead. We add the difference to our clock, else whoever gets the lock after
 * that client must write a number back. Returns the new difference, which never falls. Clients do
 * not drive each other on: a number was proposed before it was read, so the difference is no more
 * than what others' clocks are ahead. A counter that is further ahead says nothing about a clock.
 */
#define REDLOCK_FENCE_AHEAD_MAX_US 10000
int64_t redlock_fence_ahead_us(int64_t ahead_us, uint64_t counter, int64_t wall_us);

/* A node answered in the current round. It raised its counter to the token (then `counter` is
 * ignored), or sent its counter (0: it did not). */
void redlock_fence_note(struct redlock_fence *fence, unsigned node, bool accepted, uint64_t counter, int64_t wall_us);

/* A node granted the lock to one who reads, and told the counter to which it raised its own; 0:
 * there is none. The token becomes the largest of these. */
void redlock_fence_told(struct redlock_fence *fence, unsigned node, uint64_t counter, int64_t wall_us);

/* Whether a quorum of the nodes that granted also accepted the token. */
bool redlock_fence_is_won(const struct redlock_fence *fence, redlock_nodes granted, unsigned quorum);

/* Writes REDLOCK_FENCE_DIGITS digits, without a terminator. */
void redlock_fence_format(uint64_t number, char digits[REDLOCK_FENCE_DIGITS]);
/* Reads exactly that many digits, and no number above REDLOCK_FENCE_MAX. */
bool redlock_fence_parse(const char *digits, size_t size, uint64_t *number);

#endif
