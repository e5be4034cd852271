/* A lease as its caller has it: its memory. */
#ifndef REDLOCK_GROUP_HANDLE_H
#define REDLOCK_GROUP_HANDLE_H

#include <assert.h>
#include <stdatomic.h>

#include "core/lease.h"
#include "core/permits.h"
#include "core/time.h"
#include "group/group.h"
#include "result/result.h"

#define REDLOCK_ROUND_HEAL 0 /* answers to a HEAL are no votes; real rounds start at 1 */
/* Added to a round: the answer says the time of a node that pushed a grant of it. */
#define REDLOCK_ROUND_PUSHED (UINT32_C(1) << 31)

/*
 * The life of a lease as its caller knows it. It says nothing of the lock: the handle of a lease
 * that was lost is OUT until its caller gives it back.
 *
 * state      what happens                                         → state
 * REQUESTED  its callback is next, with OK; or it is adopted      → OUT
 *            its callback is next, with another code; or it has won, and is cancelled or closed
 *            before that                                          → OVER
 * OUT        redlock_release()                                    → RELEASING
 *            the group closes                                     → CLOSING
 *            redlock_lease_forget()                               → FORGOTTEN
 * RELEASING, CLOSING
 *            the callback of the release is next                  → OVER
 * OVER       the same, where it was won and not handed out        → OVER
 * OVER, FORGOTTEN
 *            all else is over, but a push must find its token     → LINGERING
 *
 * When the memory is freed: OVER, when the core has ENDED, the callbacks have run and no answer is
 * under way; FORGOTTEN, when the callbacks have run and no answer is under way; LINGERING, at its
 * time in the schedule.
 */
enum redlock_life {
    REDLOCK_LIFE_REQUESTED,
    REDLOCK_LIFE_OUT,       /* the caller may use it */
    REDLOCK_LIFE_RELEASING, /* the caller waits for the result */
    REDLOCK_LIFE_CLOSING,
    REDLOCK_LIFE_OVER,
    REDLOCK_LIFE_FORGOTTEN, /* answers and timers change nothing any more */
    REDLOCK_LIFE_LINGERING  /* likewise */
};

/* Whether the table has this step. */
static inline bool redlock_life_may_become(enum redlock_life life, enum redlock_life next) {
    switch (next) {
    case REDLOCK_LIFE_OUT:
        return life == REDLOCK_LIFE_REQUESTED;
    case REDLOCK_LIFE_RELEASING:
    case REDLOCK_LIFE_CLOSING:
    case REDLOCK_LIFE_FORGOTTEN:
        return life == REDLOCK_LIFE_OUT;
    case REDLOCK_LIFE_OVER:
        return life != REDLOCK_LIFE_OUT && life <= REDLOCK_LIFE_OVER;
    case REDLOCK_LIFE_LINGERING:
        return life == REDLOCK_LIFE_OVER || life == REDLOCK_LIFE_FORGOTTEN;
    case REDLOCK_LIFE_REQUESTED:
        break;
    }
    return false;
}

/* What only an acquire that may queue needs. */
struct redlock_waiting {
    uint64_t arrival_us; /* redlock_line_arrive() */
    uint32_t id;
    redlock_nodes refusing; /* nodes that could not keep this queue when last asked */
    bool counted : 1;       /* in the statistics as queued */
    bool guessed : 1;       /* the ticket of this place, before a quorum of clocks was known */
    bool in_line : 1;       /* it never tries: an item of a bundle that was tried, or a gate */
    bool is_gate : 1;       /* it is that of slots */
    uint8_t handing;        /* enum redlock_handing, of the RELEASE of this lease */
};

/* What only a lease with permits needs. */
struct redlock_permits {
    struct redlock_permits_core core;
    /* An acquire has stepped; `lost`: its attempt was lost, and it goes on. NULL: adopted. */
    void (*stepped)(struct redlock_lease *lease, bool lost);
    /* Asks for the gate of the lease. */
    int (*ask_gate)(struct redlock_lease *lease, struct redlock_lease **gate);
    struct redlock_lease *gate; /* that we wait for, or have; NULL: none */
    uint64_t arrival_us;        /* redlock_line_arrive() */
    uint32_t round;             /* of the last take */
    redlock_nodes held;         /* they gave slots; their votes wait for those of others */
    redlock_nodes refused;      /* they took nothing for us, */
    redlock_nodes unknown;      /* or did not say */
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

/* What a vote uses stands together, from the end of the requester to the first fields of the core.
 * With thousands of leases, each line of the cache that a vote touches costs more than its
 * instructions. */
struct redlock_lease {
    struct redlock_requester requester;
    struct redlock_group *group;
    struct redlock_waiting *waiting; /* NULL: never queues; else at the end of this memory */
    uint8_t token_size;
    uint8_t callbacks; /* enum redlock_callback_kind: still to run, so it is in the group's queue */
    int8_t acquired_code, extended_code, released_code;
    uint8_t life; /* enum redlock_life */
    uint8_t loss; /* enum redlock_loss */
    bool in_callback : 1;
    bool try_logged : 1;     /* the log has told of the last try, and votes are the same */
    bool extend_pending : 1; /* the callback of an extend has not run */
    bool waited : 1;         /* its first try failed, or it queued */
    bool is_traced : 1;      /* has a trace */
    bool by_try : 1;         /* it has the lock alone, by a token of redlock_holder_is_try() */
    bool has_expiring : 1;   /* has a struct redlock_expiring */
    redlock_nodes texts;     /* whose details have a text: to look there fetches memory */
    /* The longest ttl that this lease sent: all its keys are gone this long after its release. */
    int32_t ttl_sent_max_ms;
    struct redlock_lease_core core;
    struct redlock_target *target;
    _Atomic int64_t held_until_ns; /* the core's deadline, for any thread */
    _Atomic int64_t *watch;        /* gets the same; NULL: nobody watches */
    struct redlock_lease *next_callback;
    redlock_callback cb; /* of the acquire, later of the release */
    void *data;
    redlock_callback extend_cb;
    void *extend_data;
    int32_t extend_ttl_ms; /* the ttl that the caller asked for */
    redlock_lost_callback lost_cb;
    void *lost_data;
    /* When the acquire was asked for; then how long it took; then how long the lease was held. */
    int64_t span_ns;
    /* One for each node, of the current round; then redlock_expiring, the trace, `waiting` or
     * redlock_permits with what nodes gave, the target and the token. */
    struct redlock_result_vote details[];
};

static inline void redlock_handle_become(struct redlock_lease *lease, enum redlock_life next) {
    assert(redlock_life_may_become((enum redlock_life)lease->life, next));
    lease->life = (uint8_t)next;
}

static inline bool redlock_handle_is_forgotten(const struct redlock_lease *lease) {
    return lease->life >= REDLOCK_LIFE_FORGOTTEN;
}

/* Whether ACQUIRED or ADOPTED was told of it, and its end was not. */
static inline bool redlock_handle_has_span(const struct redlock_lease *lease) {
    return lease->life >= REDLOCK_LIFE_OUT && lease->life <= REDLOCK_LIFE_CLOSING;
}

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

/* As it was given. */
static inline const char *redlock_handle_resource(const struct redlock_lease *lease) {
    return redlock_target_key(lease->target) + lease->group->key_prefix_size;
}

/* See redlock_lease_validity_ms(). */
static inline int64_t redlock_handle_validity_ms(const struct redlock_lease *lease) {
    const int64_t until_ns = atomic_load_explicit(&lease->held_until_ns, memory_order_acquire);
    return until_ns ? redlock_validity_ms(until_ns, redlock_group_now_ns(lease->group)) : 0;
}

/* Of a lease with permits. */
static inline struct redlock_permits *redlock_handle_permits(const struct redlock_lease *lease) {
    const char *room = (const char *)(lease->details + lease->group->node_count);
    assert(lease->target->has_slots);
    room += lease->has_expiring ? sizeof(struct redlock_expiring) : 0;
    room += lease->is_traced ? sizeof(void *) : 0;
    return (struct redlock_permits *)(uintptr_t)room;
}

/* The token stands behind the target; terminated. */
static inline char *redlock_handle_own_token(const struct redlock_lease *lease) {
    return redlock_target_end(lease->target);
}

/* Creates a lease in the group's list. NULL if there is no memory. `may_queue`: with memory to wait
 * in queues, and for the token of a waiter. Of the options, it keeps what only some leases have. */
struct redlock_lease *redlock_handle_new(struct redlock_group *group, const char *resource, size_t key_size,
                                         size_t token_size, bool may_queue, const redlock_acquire_options *options);
/* Takes over the text of a node's vote, and drops the last one. */
static inline void redlock_handle_put_text(struct redlock_lease *lease, unsigned node, struct redlock_text *text) {
    if (lease->texts & REDLOCK_NODE(node)) {
        redlock_text_drop(lease->details[node].text);
        lease->texts &= ~REDLOCK_NODE(node);
    }
    if (text) {
        lease->texts |= REDLOCK_NODE(node);
    }
    lease->details[node].text = text;
}
static inline void redlock_handle_drop_texts(struct redlock_lease *lease) {
    for (; lease->texts != 0; lease->texts &= lease->texts - 1) {
        struct redlock_result_vote *detail = &lease->details[redlock_nodes_first(lease->texts)];
        redlock_text_drop(detail->text);
        detail->text = NULL;
    }
}
/* See redlock_lease_slots(). */
size_t redlock_handle_slots(const struct redlock_lease *lease, uint32_t *slots, size_t room);
/* Fills in the votes of the last round. */
void redlock_handle_fill_result(const struct redlock_lease *lease, struct redlock_result *result);
/* Writes how the lease was lost, in one sentence for the owner and the log. */
void redlock_handle_loss_text(const struct redlock_lease *lease, char *buffer, size_t size);
/* The same for a round of extension that ended with this code. */
void redlock_handle_round_text(const struct redlock_lease *lease, int code, char *buffer, size_t size);
/* What a node's answer "queued" says. */
struct redlock_grants_view redlock_handle_view(const struct redlock_lease *lease, const struct redlock_answer *answer);

#endif
