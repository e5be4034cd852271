/* A lease as its caller has it: its memory. */
#ifndef REDLOCK_GROUP_HANDLE_H
#define REDLOCK_GROUP_HANDLE_H

#include <stdatomic.h>

#include "core/lease.h"
#include "group/group.h"
#include "result/result.h"

#define REDLOCK_ROUND_HEAL 0 /* answers to a HEAL are no votes; real rounds start at 1 */
/* Added to a round: the answer says the time of a node that pushed a grant of it. */
#define REDLOCK_ROUND_PUSHED (UINT32_C(1) << 31)

/* A node's vote in the current round, for the result. */
struct redlock_detail {
    struct redlock_text *text;
    int32_t latency_us;
    uint8_t kind;
    uint16_t logged; /* a hash of the vote that the log gave last; 0: none */
};

/* What only an acquire that may queue needs. */
struct redlock_waiting {
    uint64_t arrival_us; /* redlock_line_arrive() */
    uint32_t id;
    redlock_nodes refusing; /* nodes that cannot keep the queue of this resource */
    /* Nodes from which we expect no push for this token: they have granted it, or we healed
     * them. */
    redlock_nodes no_push_due;
    redlock_nodes timing;  /* nodes that pushed a grant, and whose time we have asked for */
    redlock_nodes crossed; /* nodes whose push came while our release was under way there */
    bool listed : 1;       /* in the line, by id */
    bool in_line : 1;      /* counted there as waiting */
    bool counted : 1;      /* in the statistics as queued */
    bool has_place : 1;    /* the current token is that of a place, not of a first try */
    bool guessed : 1;      /* the ticket of this place, before a quorum of clocks was known */
    bool lingers : 1;      /* forgotten, but its token must be known when a push comes */
    uint8_t handing;       /* enum redlock_handing, of the RELEASE of this lease */
};

enum redlock_callback_kind {
    REDLOCK_CALLBACK_ACQUIRED = 1,
    REDLOCK_CALLBACK_EXTENDED = 2,
    REDLOCK_CALLBACK_LOST = 4,
    REDLOCK_CALLBACK_RELEASED = 8,
    REDLOCK_CALLBACK_EXPIRING = 16
};

/* Who wants to know that the deadline is near. Few give one. */
struct redlock_expiring {
    redlock_expiring_callback cb;
    void *data;
};

/* The owner and the core come first: a vote uses little else. */
struct redlock_lease {
    struct redlock_owner owner;
    struct redlock_lease_core core;
    struct redlock_group *group;
    struct redlock_target *target;
    uint8_t token_size;
    uint8_t callbacks; /* enum redlock_callback_kind: callbacks still to run */
    int8_t acquired_code, extended_code, released_code;
    bool in_callback_queue : 1;
    bool in_callback : 1;
    bool token_drawn : 1;  /* the token of the next attempt is there already */
    bool handle_ended : 1; /* the caller must not use the lease any more */
    bool forgotten : 1;    /* answers and timers change nothing any more */
    bool try_logged : 1;   /* the log has told of the last try, and no vote has changed since */
    uint8_t loss : 3;      /* enum redlock_loss */
    bool counted_held : 1;
    bool extend_pending : 1;       /* the callback of an extend has not run */
    bool release_pending : 1;      /* the callback of a release has not run */
    bool waited : 1;               /* its first try failed, or it queued */
    bool has_span : 1;             /* ACQUIRED or ADOPTED was told, and its end was not */
    bool is_traced : 1;            /* has a trace */
    bool only_deletes : 1;         /* its release serves no queue: REDLOCK_ORDER_NONE */
    bool has_expiring : 1;         /* has a struct redlock_expiring */
    _Atomic int64_t held_until_ns; /* the core's deadline, for any thread */
    _Atomic int64_t *watch;        /* gets the same; NULL: nobody watches */
    struct redlock_lease *next_callback;
    redlock_callback cb; /* of the acquire, later of the release */
    void *data;
    redlock_callback extend_cb;
    void *extend_data;
    int32_t extend_ttl_ms; /* the ttl that the caller asked for */
    /* The longest ttl that this lease sent: all its keys are gone this long after its release. */
    int32_t ttl_sent_max_ms;
    redlock_lost_callback lost_cb;
    void *lost_data;
    /* When the acquire was asked for; then how long it took; then how long the lease was held. */
    int64_t span_ns;
    struct redlock_waiting *waiting; /* NULL: never queues; else at the end of this memory */
    /* One for each node; then redlock_expiring, the trace, `waiting`, the target and the token. */
    struct redlock_detail details[];
};

/* NULL if nobody does. */
static inline struct redlock_expiring *redlock_handle_expiring(const struct redlock_lease *lease) {
    return lease->has_expiring ? (struct redlock_expiring *)(uintptr_t)(lease->details + lease->group->node_count)
                               : NULL;
}

/* The caller's pointer for events. Few give one. */
static inline void *redlock_handle_trace(const struct redlock_lease *lease) {
    const char *room = (const char *)(lease->details + lease->group->node_count);
    room += lease->has_expiring ? sizeof(struct redlock_expiring) : 0;
    return lease->is_traced ? *(void *const *)(const void *)room : NULL;
}

/* The token stands behind the target; terminated. */
static inline char *redlock_handle_own_token(const struct redlock_lease *lease) {
    return redlock_target_end(lease->target);
}

/* Fills in the votes of the last round. */
void redlock_handle_fill_result(const struct redlock_lease *lease, struct redlock_result *result);
/* Writes how the lease was lost, in one sentence for the owner and the log. */
void redlock_handle_loss_text(const struct redlock_lease *lease, char *buffer, size_t size);
/* The same for a round of extension that ended with this code. */
void redlock_handle_round_text(const struct redlock_lease *lease, int code, char *buffer, size_t size);
/* What a node's answer "queued" says. */
struct redlock_queue_view redlock_handle_view(const struct redlock_lease *lease, const struct redlock_answer *answer);

#endif
