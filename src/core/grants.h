/* A waiter in the queues of all nodes: who has granted it the lock, whom it waits for, and when to
 * ask again. */
#ifndef REDLOCK_CORE_GRANTS_H
#define REDLOCK_CORE_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quorum.h"

/* WAITs whose send time is remembered: a grant of an older one does not count. */
#define REDLOCK_GRANTS_SENT_MAX 8

/* Who has the lock at a node, as seen by a waiter. */
enum redlock_grants_holder {
    REDLOCK_HOLDER_NONE,
    REDLOCK_HOLDER_EARLIER,  /* a waiter with a lower token */
    REDLOCK_HOLDER_LATER,    /* a waiter with a higher token */
    REDLOCK_HOLDER_DIRECT,   /* took it by a try; it will hand the lock over */
    REDLOCK_HOLDER_STRANGER, /* will not hand it over: another library */
    /* Others read the lock, and a writer with a lower token is in line before us. */
    REDLOCK_HOLDER_AHEAD
};

/* A node's answer "queued". */
struct redlock_grants_view {
    enum redlock_grants_holder holder;
    uint64_t holder_id; /* differs between tokens */
    int64_t pttl_ms;    /* of the lock; -1: no end, -2: it is free */
    uint32_t rank;      /* waiters before us */
};

struct redlock_grants_node {
    int64_t bound_ns;   /* the send time of the WAIT that the node granted */
    int64_t expires_ns; /* when the holder's key ends */
    uint64_t holder_id;
    uint32_t granted; /* the round of the WAIT that it granted; 0: none */
    uint32_t queued;  /* a grant of an older round is stale: the node said "queued" since */
    uint32_t rank;
    uint8_t holder; /* enum redlock_grants_holder */
    uint8_t push;   /* enum redlock_push_state, core/push.h */
};

/* What a waiter did, for the statistics and the log. */
enum redlock_grants_did {
    REDLOCK_GRANTS_NOTHING,
    REDLOCK_GRANTS_ENTERED,
    REDLOCK_GRANTS_REFRESHED,
    REDLOCK_GRANTS_POLLED,
    REDLOCK_GRANTS_LOOKED, /* some nodes granted, but no quorum */
    REDLOCK_GRANTS_YIELDED
};

/*
 * A grant is a vote whose answer comes late: by push, or in answer to a later WAIT. It carries the
 * round n of the WAIT that it grants. The node executed that WAIT after we had sent it, and set the
 * key after that, so the key lives there until send time + ttl − drift at least. The answer
 * "queued" to WAIT n says that at that moment the node had not given the lock to this token. So a
 * grant of a round below n does not count any more, however late it comes, and it does not matter
 * in which order two connections deliver (docs/protocols.md, "Waiting in a queue").
 */
struct redlock_grants {
    redlock_nodes granted;   /* nodes whose grant counts now */
    redlock_nodes fresh;     /* nodes that answered the current round */
    uint32_t first_round;    /* of the current token */
    uint32_t round;          /* the last one */
    uint32_t passed_over;    /* times the lock went to a later ticket */
    bool looks;              /* it also finds out why there is no quorum of grants */
    uint8_t yields;          /* in a row, without another token on a quorum */
    uint8_t looked;          /* looks in a row that changed nothing, with these grants */
    uint8_t polled;          /* times in a row that the nodes could not keep its queue */
    bool barred;             /* too few nodes can push to us: takes no place; set from outside */
    bool unheard;            /* too few do so by now: refreshes come soon; likewise */
    bool takes;              /* the current WAIT also takes a lock that is free */
    bool behind;             /* one other token had a quorum when we last knew */
    uint64_t holder_id;      /* that token, or the last one that had */
    int64_t holder_since_ns; /* when we first saw it there */
    int32_t ttl_ms;          /* that the WAITs of the current token ask for */
    /* The slowest answer to the current WAIT so far, or to the one before. */
    int64_t slowest_ns;
    int64_t refresh_ns;
    int64_t left_until_ns;  /* a lock that was left free needs a look then; past: none does */
    int64_t look_ns;        /* when to find out why there is no quorum */
    int64_t ask_ns;         /* when the first in line asks, or the retry where too few answered */
    int64_t polls_until_ns; /* takes no place before */
    int64_t sent_ns[REDLOCK_GRANTS_SENT_MAX];
    struct redlock_grants_node nodes[]; /* one for each node */
};

/* A fresh token: nothing is granted. Its first WAIT is that of `round`; 0: it has no place. */
void redlock_grants_begin(struct redlock_grants *grants, unsigned node_count, uint32_t round);
void redlock_grants_sent(struct redlock_grants *grants, uint32_t round, int64_t now_ns);
/* Whether a grant of the WAIT of `round` would count: it is neither too old nor known. */
bool redlock_grants_may_grant(const struct redlock_grants *grants, unsigned node, uint32_t round);
/* Takes it. Returns whether it counts. */
bool redlock_grants_grant(struct redlock_grants *grants, unsigned node, uint32_t round, int64_t now_ns);
/* The node answered the current WAIT with "queued". */
void redlock_grants_deny(struct redlock_grants *grants, unsigned node, const struct redlock_grants_view *view,
                         int64_t now_ns);
/* Grants of these nodes do not count, however late they come, if their WAIT was sent before now. */
void redlock_grants_void(struct redlock_grants *grants, redlock_nodes nodes);

/* The send time that the lease may count from: the quorum-th latest bound of the grants. Only with
 * a quorum of grants. */
int64_t redlock_grants_bound_ns(const struct redlock_grants *grants, unsigned quorum);
/* The nodes that granted with this bound or a later one. */
redlock_nodes redlock_grants_backing(const struct redlock_grants *grants, int64_t bound_ns);

/* How many of the nodes that answered have the lock under this node's token. */
unsigned redlock_grants_count_like(const struct redlock_grants *grants, unsigned node);
/* The nodes that answered "queued" where a waiter with a lower token has the lock, or is ahead. */
redlock_nodes redlock_grants_before_us(const struct redlock_grants *grants);
/* The nodes that answered "queued" with this kind of holder. */
redlock_nodes redlock_grants_held_by(const struct redlock_grants *grants, enum redlock_grants_holder holder);
/* The nodes that answered "queued" and where nobody waits before us. */
redlock_nodes redlock_grants_first_at(const struct redlock_grants *grants);
/* The fewest waiters before us at a node that answered "queued"; UINT32_MAX without such a node. */
uint32_t redlock_grants_rank(const struct redlock_grants *grants);
/* When the locks of a quorum of the nodes that answered will have ended; REDLOCK_NEVER_NS if
 * not. */
int64_t redlock_grants_expiry_ns(const struct redlock_grants *grants, unsigned quorum);

#endif
