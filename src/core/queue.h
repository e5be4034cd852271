/* A waiter in the queues of all nodes: who has granted it the lock, whom it waits for, and when to
 * ask again. */
#ifndef REDLOCK_CORE_QUEUE_H
#define REDLOCK_CORE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quorum.h"

/* WAITs whose send time is remembered: a grant of an older one does not count. */
#define REDLOCK_QUEUE_SENT_MAX 8

/* Who has the lock at a node, as seen by a waiter. */
enum redlock_queue_holder {
    REDLOCK_HOLDER_NONE,
    REDLOCK_HOLDER_EARLIER, /* a waiter with a lower token */
    REDLOCK_HOLDER_LATER,   /* a waiter with a higher token */
    REDLOCK_HOLDER_DIRECT,  /* took it at its first try; it will hand the lock over */
    REDLOCK_HOLDER_STRANGER /* will not hand it over: another library, or no waiter */
};

/* A node's answer "queued". */
struct redlock_queue_view {
    enum redlock_queue_holder holder;
    uint64_t holder_id; /* differs between tokens */
    int64_t pttl_ms;    /* of the lock; -1: no end */
    uint32_t rank;      /* waiters before us */
};

struct redlock_queue_node {
    int64_t bound_ns;   /* the send time of the WAIT that the node granted */
    int64_t expires_ns; /* when the holder's key ends */
    uint64_t holder_id;
    uint32_t granted; /* the round of the WAIT that it granted; 0: none */
    uint32_t queued;  /* the last round that it answered with "queued"; older grants are stale */
    uint32_t rank;
    uint8_t holder;
};

/* What a waiter did, for the statistics. */
enum redlock_queue_step {
    REDLOCK_QUEUE_NOTHING,
    REDLOCK_QUEUE_ENTERED,
    REDLOCK_QUEUE_REFRESHED,
    REDLOCK_QUEUE_POLLED,
    REDLOCK_QUEUE_LOOKED, /* some nodes granted, but no quorum */
    REDLOCK_QUEUE_YIELDED
};

struct redlock_queue {
    redlock_nodes granted;   /* nodes whose grant counts now */
    redlock_nodes fresh;     /* nodes that answered the current round */
    uint32_t first_round;    /* of the current token */
    bool takes;              /* the current WAIT also takes a lock that is free */
    bool looks;              /* the current round finds out why there is no quorum */
    bool behind;             /* at the last look, one other token had a quorum */
    uint64_t holder_id;      /* that token, */
    int64_t holder_since_ns; /* seen first then */
    int64_t refresh_ns, split_ns;
    uint32_t passed_over;
    int64_t sent_ns[REDLOCK_QUEUE_SENT_MAX];
    struct redlock_queue_node nodes[]; /* one for each node */
};

#endif
