/* Fencing tokens: the number that an attempt proposes, whether a quorum took it, and the number to write back if not. */
#ifndef REDLOCK_CORE_FENCE_H
#define REDLOCK_CORE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/quorum.h"

/*
 * Each node keeps a counter per resource, which never falls. A lease's token is a number to which a quorum of nodes raised
 * their counters, each in one atomic step and from below. Two quorums share a node, so two tokens differ, and a lease that
 * began after another had its token gets a larger one. Clocks and ttls do not appear in the argument.
 *
 * A number is microseconds of the wall clock × 1000 + the client's low digits: near to what others propose, yet unique.
 */
#define REDLOCK_FENCE_CLIENTS 1000 /* low digits: 0 to 999 */
#define REDLOCK_FENCE_DIGITS  20   /* on the wire: of fixed width, so that nodes compare them as strings */
#define REDLOCK_FENCE_MAX     ((uint64_t)INT64_MAX)

/*
 * A lease is safe with any number that a quorum took, so a client need believe no counter. It
 * follows one that its own clock explains. Any other may be a lie, and is followed only where no
 * quorum is left without it, the lowest first. Nodes store no number more than an hour (with an
 * expiry) or a day ahead of their own clock. So a counter that a client believes is one that nodes
 * store, if their clocks differ from its own by less than half an hour.
 */
#define REDLOCK_FENCE_BELIEVED_US (INT64_C(30) * 60 * 1000000)

struct redlock_fence {
    uint64_t token; /* proposed, or being written back; the lease's once a quorum raised its counters to it */
    /* The highest counter of this resource that a node told of and the clock explains, in any
     * attempt of this request. */
    uint64_t seen;
    uint64_t far_least;     /* the lowest counter of `far` */
    redlock_nodes accepted; /* nodes that raised their counter to `token` */
    redlock_nodes told;     /* nodes that did not, for theirs was not below it */
    redlock_nodes far;      /* of these, the ones whose counter the clock does not explain */
    uint16_t client;        /* low digits */
};

/*
 * For an attempt: the wall clock's number, or the next above what was seen (and above the last
 * token, where a node accepted that and the clock explains it) if that is larger. Never 0. A wall
 * clock before 1970 or after 2200 counts as 0. False, and nothing is changed, when there is no such
 * number (REDLOCK_FENCE_MAX).
 */
bool redlock_fence_propose(struct redlock_fence *fence, int64_t wall_us);

/* For the slow path: likewise, and above the token that was proposed; and where told to follow,
 * above the lowest counter of `far`. Both forget who accepted, and who told what of its counter. */
bool redlock_fence_raise(struct redlock_fence *fence, int64_t wall_us, bool follow);

/* Whether the clock does not explain this counter: it is ahead by more than
 * REDLOCK_FENCE_BELIEVED_US. */
bool redlock_fence_is_far(uint64_t counter, int64_t wall_us);

/*
 * Clients' clocks differ a little, and a counter that is a little ahead of ours was made by one that is: ours follows it, or whoever has the lock
 * after that client has to write a number back. Returns by how much: never less than before, and no more than others' clocks are ahead, for
 * the number was proposed before it was read. So clients do not drive each other on. A counter that is further ahead is no sign of a clock.
 */
#define REDLOCK_FENCE_AHEAD_MAX_US 10000
int64_t redlock_fence_ahead_us(int64_t ahead_us, uint64_t counter, int64_t wall_us);

/* A node's vote of the current round: it raised its counter to the token (then `counter` is not looked at), or told its counter
 * (0: it did not). */
void redlock_fence_note(struct redlock_fence *fence, unsigned node, bool accepted, uint64_t counter, int64_t wall_us);

/* Whether these nodes, of those that granted, make a quorum that accepted. */
bool redlock_fence_is_won(const struct redlock_fence *fence, redlock_nodes granted, unsigned quorum);

/* Exactly REDLOCK_FENCE_DIGITS digits, not terminated. */
void redlock_fence_format(uint64_t number, char digits[REDLOCK_FENCE_DIGITS]);
/* Nothing but that many digits, and not above REDLOCK_FENCE_MAX. */
bool redlock_fence_parse(const char *digits, size_t size, uint64_t *number);

#endif
