/* What a group needs for queues, besides its leases: the channel, the subscriptions, the nodes'
 * clock, and who waits here for which resource. */
#ifndef REDLOCK_GROUP_LINE_H
#define REDLOCK_GROUP_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/push.h"
#include "group/env.h"
#include "wire/message.h"

#define REDLOCK_LINE_BUCKETS 1024
#define REDLOCK_LINE_REASONS 4  /* why queues cannot be kept, of the last WARNINGs */
#define REDLOCK_LINE_GIVEN   64 /* pushes */

struct redlock_lease;

/*
 * Resources share buckets, by a hash. So "somebody here waits for it" and "our last release of it
 * was handed over" may be wrong. That is harmless: the acquire then takes a place in the queue
 * without a first try. If the lock is free, it gets it all the same.
 */
struct redlock_line {
    char channel[REDLOCK_CHANNEL_SIZE_MAX]; /* "" until somebody waits */
    uint64_t secret[2];                     /* for seals; drawn with the channel */
    redlock_nodes listening;                /* nodes that can push to us; */
    redlock_nodes refusing;                 /* nodes that cannot, */
    bool polls;                             /* too many: no acquire takes a place */
    uint64_t warned[REDLOCK_LINE_REASONS];  /* hashes of reasons; a ring */
    uint32_t warned_next;
    redlock_nodes met;                                      /* nodes that have been ready */
    redlock_nodes clocks;                                   /* nodes whose clock we have read */
    struct redlock_clock_sample samples[REDLOCK_NODES_MAX]; /* the best reading of each */
    uint64_t last_arrival_us;
    struct redlock_lease **places; /* the leases that may wait, by id; NULL: free */
    uint32_t place_count, free_hint;
    uint32_t waiting[REDLOCK_LINE_BUCKETS]; /* leases that are QUEUED */
    bool handed_over[REDLOCK_LINE_BUCKETS];
    struct redlock_push_expected expected;
    uint64_t given[REDLOCK_LINE_GIVEN]; /* the seals of the newest pushes given back; a ring */
    uint32_t given_next;
};

/* Gives the lease an id. False if there is no memory. */
bool redlock_line_add(struct redlock_line *line, struct redlock_lease *lease, uint32_t *id);
void redlock_line_remove(struct redlock_line *line, uint32_t id);
/* NULL if no lease has this id. */
struct redlock_lease *redlock_line_get(const struct redlock_line *line, uint32_t id);
void redlock_line_clear(struct redlock_line *line);

/* Draws the channel's name and the secret, and subscribes, when the first one waits. Returns OK or
 * the code of env.random(). */
int redlock_line_open(struct redlock_line *line, const struct redlock_env *env);

/* Reads a node's clock. */
void redlock_line_note_clock(struct redlock_line *line, unsigned node, const struct redlock_clock_sample *sample);
/* When an acquire began, in microseconds of CLOCK_BOOTTIME; later each time, so that acquires of
 * the same moment keep their order. */
uint64_t redlock_line_arrive(struct redlock_line *line, int64_t now_ns);
/* The same moment of the nodes' clock: CLOCK_BOOTTIME and the median of how far nodes are ahead.
 * Never 0. */
uint64_t redlock_line_ticket(const struct redlock_line *line, const struct redlock_env *env, uint64_t arrival_us);
/* Whether it is too far from the ticket that the clocks give now. Readings differ by little. */
bool redlock_line_is_wrong(uint64_t ticket, uint64_t right);
/* Whether the clocks of a quorum of nodes are known. */
bool redlock_line_knows_time(const struct redlock_line *line, unsigned quorum);

/* Whether a first try would jump the queue. */
bool redlock_line_is_in_line(const struct redlock_line *line, const struct redlock_target *target);
/* A lease is QUEUED for it, or is not any more. */
void redlock_line_note_queued(struct redlock_line *line, const struct redlock_target *target, bool queued);
/* Whether this push is to be given back. True once: a node says each but once. */
bool redlock_line_give(struct redlock_line *line, const struct redlock_push *push);
/* Whether to warn of this reason why nodes cannot keep a queue. A node that reconnects and refuses
 * again is nothing new, nor is the next acquire. */
bool redlock_line_warns(struct redlock_line *line, const char *reason);

/* A node said whether a release of ours went to a waiter. */
void redlock_line_note_release(struct redlock_line *line, const struct redlock_target *target, bool handed_over);

/*
 * Whoever may subscribe to the channels hears each push, and whoever may publish can say it again,
 * on any node, with other words. So a WAIT carries a seal for each node, which the node gives back
 * with its push: a keyed hash of the node, of all that the push says but its time, and of the
 * period in which the WAIT was sent. What is heard from one node proves nothing for another one,
 * for another WAIT or another key (docs/protocols.md, "What channels say").
 *
 * A seal fits until the period after that of its WAIT is over: for one to two of them.
 */
#define REDLOCK_LINE_SEAL_PERIOD_MS 15000
/* No seal of a WAIT that was sent until now fits after this. */
#define REDLOCK_LINE_SEAL_MS_MAX (2 * REDLOCK_LINE_SEAL_PERIOD_MS)

/* The seals of a WAIT for each of these nodes. `push` is what a node would say. */
void redlock_line_seal(const uint64_t secret[2], redlock_nodes nodes, const struct redlock_push *push, int64_t now_ns,
                       uint64_t *seals);
/* Whether this node was sent such a WAIT, not long ago. */
bool redlock_line_seal_fits(const uint64_t secret[2], unsigned node, const struct redlock_push *push, int64_t now_ns);

#endif
