/* The states of a lease, the events and actions of its state machine, and its memory. */
#ifndef REDLOCK_CORE_LEASE_STATE_H
#define REDLOCK_CORE_LEASE_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/fence.h"
#include "core/grants.h"
#include "core/keys.h"
#include "core/operation.h"
#include "core/quorum.h"

/*
 * The states, and what each event does. An event that is not listed changes nothing. "cleanup" is a
 * release of the current token on every node that was asked for it, unless its vote on that was
 * FAILED (R8).
 *
 * IDLE       park                 → PARKED     until the nodes are known, or until `until_ns`
 *            begin                → ACQUIRING  send ACQUIRE to all nodes that may vote
 *            begin in line        → QUEUED     send WAIT to all nodes that may vote
 *            begin, ttl <= drift  → ENDED      acquired TOO_SLOW; nothing is sent
 *            cancel               → ENDED      acquired CANCELLED (or CLOSED)
 *            adopt                → ADOPTED
 * PARKED     park                 → PARKED     until the sooner `until_ns`
 *            begin, time is over  → as IDLE    begin
 *            cancel               → ENDED      acquired CANCELLED (or CLOSED)
 * ACQUIRING  WON in time          → HELD       acquired OK
 *            WON in time, but a fencing token is wanted and no quorum accepted the proposal
 *                                 → FENCING    send FENCE where the lock may be ours
 *            LOST and the reason is known, WON too late, or the deadline; time left to wait
 *                                 → QUEUED     if it may queue, and does so now: cleanup, send WAIT
 *                                              under a fresh token (R10)
 *                                 → RETRYING   cleanup
 *            the same, no time left, or the wait is over
 *                                 → ENDED      cleanup, acquired CONTENDED | NO_QUORUM | TOO_SLOW;
 *                                              LIMIT if there is no larger fencing token
 *            cancel               → ENDED      cleanup, acquired CANCELLED (or CLOSED)
 * FENCING    WON in time          → HELD       acquired OK
 *            LOST to a higher counter
 *                                 → FENCING    send FENCE again, with a number above it
 *            all else             as ACQUIRING, but never QUEUED: it tries again after the delay
 * QUEUED     a quorum of grants, in time
 *                                 → HELD       acquired OK; extended at once if less than three
 *                                              quarters of the validity are left
 *                                 → FENCING    if a fencing token is wanted
 *            a quorum of grants, too late
 *                                 → QUEUED     cleanup, send WAIT under a fresh token
 *            time for the next WAIT (core/waiter.h), a node's subscription is confirmed, or a node
 *            that has not answered can be asked
 *                                 → QUEUED     send WAIT again, under the same token; if its ticket
 *                                              is wrong: cleanup, under a fresh token
 *            some grants but no quorum, and others come first (core/waiter.h)
 *                                 → QUEUED     yield: cleanup, send WAIT under a fresh token
 *            nodes cannot keep a queue, or cannot push to us
 *                                 → RETRYING   cleanup; takes no place for a while (core/waiter.h)
 *            wait is over         → ENDED      cleanup, acquired CONTENDED | NO_QUORUM
 *            cancel               → ENDED      cleanup, acquired CANCELLED (or CLOSED)
 * RETRYING   time to retry, unless it waits for the gate of its slots
 *                                 → as IDLE    begin, under a fresh token (R10)
 *            admit                → as IDLE    the same; it waits for no gate from now on
 *            exclude              → RETRYING   it waits for the gate
 *            wait is over         → ENDED      acquired with the last attempt's reason
 *            cancel               → ENDED      acquired CANCELLED (or CLOSED)
 * ADOPTED    extend, downgrade    → EXTENDING  send EXTEND to all
 *            release              → RELEASING  send RELEASE to all
 * HELD       extend, renewal      → EXTENDING  send EXTEND to all; the deadline stays until a WON
 *                                              (R12)
 *            downgrade            → EXTENDING  as extend, with the last ttl; from now on it reads
 *            the last EXTEND failed, and a node that did not answer it can be asked again
 *                                 → HELD       if the lease renews itself, the renewal is due now
 *            time to heal         → HELD       heal the nodes that do not back the lease, if any
 *            deadline             → LOST       cleanup, lost
 *            late vote; by now fewer than a quorum may have the key
 *                                 → LOST       cleanup, lost by votes
 *            late vote; keys that the deadline depends on are missing, and the last EXTEND, with a
 *            shorter ttl, was WON
 *                                 → HELD       the deadline of that EXTEND; LOST if it has passed
 *            settle               → HELD       renews itself as the plan says now, and its cap
 *                                              counts from now; renewed at once if less than three
 *                                              quarters of the validity are left
 *            release              → RELEASING  send RELEASE where the cleanup would go; now and
 *                                              then, if the lock was handed to us, it is left free
 *                                              for a moment (core/waiter.h)
 * EXTENDING  WON                  → HELD       extended OK; the deadline of this round, or the old
 *                                              one if that is later and still backed (R12); LOST if
 *                                              it has passed
 *            fewer than a quorum may have the key
 *                                 → LOST       cleanup, lost by votes, extended LOST
 *            LOST otherwise       → HELD       extended NO_QUORUM; renewals go on until deadline,
 *                                              the next one at once if a node that has not answered
 *                                              was ready meanwhile
 *            deadline             → LOST       cleanup, lost, extended LOST
 *            extend, downgrade    → EXTENDING  only over a renewal, whose votes become stale
 *            settle               → EXTENDING  likewise, after this round
 *            release              → RELEASING  send RELEASE where the cleanup would go, extended
 *                                              CANCELLED
 * RELEASING  WON                  → ENDED      released OK
 *            fewer than a quorum are left: the others say missing or foreign, or were not asked
 *                                 → ENDED      released LOST: proven, R15
 *            all votes are in, and neither
 *                                 → ENDED      released NO_QUORUM
 * LOST       extend, downgrade    → LOST       extended LOST
 *            release              → ENDED      released LOST
 * ENDED
 * ACQUIRING, FENCING, QUEUED, HELD, EXTENDING
 *            void                              the votes of these nodes do not count any more
 *            void; too few votes are left
 *                                 → LOST       cleanup, lost by a clock; before HELD, a lost
 *                                              attempt
 * HELD, EXTENDING, with a deadline
 *            expiring_ms before it             expiring, once for each deadline
 *
 * - The deadline comes first. At and after it, no vote can win and nothing is extended (R3, R12),
 *   however late the clock was read. Only a release ignores it: its votes show whether the lock was
 *   still ours.
 * - A loss that is certain is LOST at once, with the vote that shows it: core/keys.h says which
 *   nodes may have the key.
 * - An adopted lease that was never held has no deadline to keep. If its first EXTEND fails, it is
 *   ADOPTED again (NO_QUORUM; TOO_SLOW if a quorum came too late). If too few nodes may have the
 *   key, it is LOST without `lost`.
 * - With a lock delay, the keys outlive the lease, once it is settled. Then LOST makes no cleanup:
 *   the keys end with their ttl. A release at or after the deadline finds the lease LOST, even if
 *   no timer has run yet.
 * - core/waiter.h and docs/waiting.md say when a waiter asks, looks and yields. A late grant may
 *   back a lease that is held already.
 * - ACQUIRE and WAIT go to no node that a guard keeps from voting. If too few nodes are left for a
 *   quorum, nothing is sent: an attempt is lost, and a waiter asks again after the retry delay.
 * - An extend with a ttl that leaves no validity sends nothing and changes nothing: extended
 *   TOO_SLOW.
 * - A downgrade that fails leaves a lease that reads: some nodes may let others in by then. Nodes
 *   where it still has the lock alone learn of it by the next EXTEND.
 * - `expiring` waits for nothing: not for the round that is under way, nor for the first renewal of
 *   a lease that began with less time than that. A deadline that moves is a new one, and is told of
 *   again. Where the timer runs at or after the deadline, the loss is all that is told.
 * - Votes of an earlier round are stale and never count. The release that follows them removes what
 *   they set. Late votes of the current round, after its decision, still enter the sets of the
 *   round: these sets decide where a release goes.
 */
enum redlock_lease_state {
    REDLOCK_LEASE_IDLE,
    REDLOCK_LEASE_PARKED,
    REDLOCK_LEASE_ACQUIRING,
    REDLOCK_LEASE_FENCING,
    REDLOCK_LEASE_QUEUED,
    REDLOCK_LEASE_RETRYING,
    REDLOCK_LEASE_ADOPTED,
    REDLOCK_LEASE_HELD,
    REDLOCK_LEASE_EXTENDING,
    REDLOCK_LEASE_RELEASING,
    REDLOCK_LEASE_LOST,
    REDLOCK_LEASE_ENDED
};

/* What the caller asked for. Only ttl_ms, shared and at_no_gate change during the life of the
 * lease. What is about renewals changes once, where it is one of several. */
struct redlock_plan {
    int64_t wait_timeout_ms;
    /* No renewal is sent after this time; the last one may reach beyond it; 0: no limit. */
    int64_t auto_extend_max_ms;
    int32_t ttl_ms;
    int32_t lock_delay_ms; /* how much longer the keys live than the lease */
    int32_t retry_delay_min_ms, retry_delay_max_ms;
    int32_t expiring_ms; /* tell the owner so long before the deadline; 0: never */
    uint16_t node_timeout_ms;
    bool auto_extend : 1;
    bool heal : 1;
    bool fencing : 1;
    /* An item of a bundle, until it settles: nobody was told of it, so its end needs no delay. */
    bool unsettled : 1;
  bool slots : 1;        /* permits: its keys are those of slots */
    bool at_no_gate : 1; /* RETRYING until it is admitted to its slots */
};

enum redlock_event_type {
    REDLOCK_EVENT_PARK,    /* plan, until_ns */
    REDLOCK_EVENT_BEGIN,   /* plan */
    REDLOCK_EVENT_ADOPT,   /* plan */
    REDLOCK_EVENT_VOTE,    /* nodes (one), vote, round; accepted, counter */
    REDLOCK_EVENT_REFUSED, /* nodes: FAILED votes of the current round, nothing was sent */
    /* nodes (one), round: it granted the WAIT of that round, by push or late. */
    REDLOCK_EVENT_GRANT,
    REDLOCK_EVENT_LISTEN, /* a node can push grants to us from now on: take a place again */
    REDLOCK_EVENT_LEFT,   /* the lock is free at a node, or left free from now on */
    /* nodes (one): it can be asked, for the first time or again. To a lease that is HELD or
     * EXTENDING only if a quorum can. */
    REDLOCK_EVENT_READY,
    REDLOCK_EVENT_POLL,    /* a quorum of nodes cannot keep a queue: try again after delays */
    REDLOCK_EVENT_ADMIT,   /* to slots: try now, and after delays; */
    REDLOCK_EVENT_EXCLUDE, /* or not, until it is admitted again */
    REDLOCK_EVENT_VOID,    /* nodes: their clocks jumped, so their earlier votes are void */
    REDLOCK_EVENT_TIMER,   /* something may be due */
    /* `code`: why the acquire ends, REDLOCK_ERR_CANCELLED, REDLOCK_ERR_CLOSED, or
     * why there were no random bytes. */
    REDLOCK_EVENT_CANCEL,
    REDLOCK_EVENT_EXTEND,    /* ttl_ms; from the caller, see redlock_lease_extend_check() */
    REDLOCK_EVENT_DOWNGRADE, /* ttl_ms; likewise */
    REDLOCK_EVENT_SETTLE,    /* plan: of a lease that we renewed for our own sake */
    REDLOCK_EVENT_RELEASE
};

/* In this order it is small: one is zeroed for each vote that may decide something. */
struct redlock_event {
    enum redlock_event_type type : 8;
    redlock_vote_kind vote : 8;
    bool accepted;       /* the node raised its counter to the lease's fencing token */
    bool in_line;        /* BEGIN, TIMER: do not try before you take a place */
    bool may_leave_free; /* RELEASE: the lock may be left free for a moment */
    bool misplaced;      /* TIMER: its ticket is wrong; a fresh token has the right one */
    redlock_nodes nodes;
    uint32_t round;
    /* BEGIN, TIMER, and all events of a lease that may queue, before it is HELD: nodes that may not
     * vote on an acquire. */
    redlock_nodes may_not_vote;
    int code;
    int64_t now_ns;
    int64_t until_ns;
    int64_t ttl_ms;
    int64_t wall_us;  /* BEGIN, TIMER, VOTE, GRANT of a lease with fencing: the wall clock */
    uint64_t counter; /* the node did not raise it, and sent this; 0: it sent none */
    /* VOTE, DENIED, of a WAIT: what the node said. */
    const struct redlock_grants_view *view;
    const struct redlock_plan *plan;
};

/* The one node that a push or an answer is about. */
static inline unsigned redlock_event_node(const struct redlock_event *event) {
    assert((event->nodes & (event->nodes - 1)) == 0);
    return redlock_nodes_first(event->nodes);
}

/* What to do, in this order: cleanup, send, callbacks. Each step zeroes it. A code is valid only
 * with its flag. */
struct redlock_actions {
    redlock_nodes cleanup; /* release the current token on these nodes */
    /* Of these, the nodes where an earlier request may still set the key. */
    redlock_nodes uncertain;
    enum redlock_handing handing; /* of the cleanup, or of the RELEASE that is sent */
    bool fresh_token;             /* draw a token before you send */
    enum redlock_grants_did did;
    enum redlock_operation send; /* to send_nodes, as round `round` */
    redlock_nodes send_nodes;
    uint32_t round;
    /* Set the key again on these nodes, with the current token and outside of any round. */
    redlock_nodes heal;
    bool lost;           /* report the loss to the owner, once */
    bool lost_by_votes;  /* fewer than a quorum of nodes may have our key */
    bool deadline_moved; /* a late vote moved the deadline, but the state is the same */
    bool lost_by_clock;  /* clocks of nodes jumped, and too few votes are left */
    bool expiring;       /* tell the owner that the deadline is near */
    bool acquired, extended, released;
    /* For events only: a try is lost, and the acquire goes on; or a round of extension, whoever
     * asked for it, has ended. */
    bool round_over;
    int acquired_code, extended_code, released_code, round_code;
};

/* The fields that each vote reads come first, close together in memory. */
struct redlock_lease_core {
    enum redlock_lease_state state : 8;
    enum redlock_operation operation : 8; /* of the current round */
    uint32_t round;                       /* rises by one with each round */
    struct redlock_round votes;           /* of the current round */
    int64_t start_ns;                     /* of the current round */
    struct redlock_keys keys;             /* of the current token */
    uint32_t attempts;
    int64_t deadline_ns; /* of the lease; while ACQUIRING, what it will be */
    int64_t wait_until_ns;
    struct redlock_plan plan;
    uint32_t jitter;
    uint8_t node_count;
    bool extend_by_caller; /* the EXTENDING round answers a caller's request */
    bool was_held;
    bool shared; /* it reads, beside others who do; from the start, or since a downgrade */
    bool is_adopted : 1;
    bool renews_at_once : 1; /* if the EXTENDING round fails: a node is ready since it began */
    bool backing_grows;      /* the current round made the lease, so late grants also back it */
    bool fence_written;      /* the fencing token needed a second round trip */
    int8_t last_code;        /* why the last attempt was lost */
    bool expiring_told;      /* `expiring` was told for this deadline */
    int32_t round_ttl_ms;    /* the ttl that the current round sent */
    int64_t begun_ns;        /* HELD since then; auto_extend_max_ms counts from here */
    int64_t next_try_ns;     /* time of the next attempt or renewal */
    int64_t heal_ns;         /* time to heal */
    int64_t heal_before_ns;  /* do not heal at or after this */
    struct redlock_fence fence;
    struct redlock_grants *grants; /* of a FAIR acquire that waits; NULL: it never queues */
};

/* HELD, with an extension under way or not. */
/* Whether its keys outlive it. */
static inline bool redlock_lease_delays(const struct redlock_lease_core *lease) {
    return lease->plan.lock_delay_ms > 0 && !lease->plan.unsettled;
}

static inline bool redlock_lease_is_held(const struct redlock_lease_core *lease) {
    return lease->state == REDLOCK_LEASE_HELD || lease->state == REDLOCK_LEASE_EXTENDING;
}

/* Whether the current round still needs votes. */
static inline bool redlock_lease_round_is_open(const struct redlock_lease_core *lease) {
    const unsigned open = 1U << REDLOCK_LEASE_ACQUIRING | 1U << REDLOCK_LEASE_FENCING | 1U << REDLOCK_LEASE_QUEUED |
                          1U << REDLOCK_LEASE_EXTENDING | 1U << REDLOCK_LEASE_RELEASING;
    return (open >> lease->state & 1) != 0;
}

/* With actions->fresh_token, the round has a token of its own (R10). */
void redlock_lease_start_round(struct redlock_lease_core *lease, enum redlock_operation operation, redlock_nodes nodes,
                               int64_t now_ns, struct redlock_actions *actions);
/* Says where to release the current token (R8), once: from then on this lease has no key there. */
void redlock_lease_clean_up(struct redlock_lease_core *lease, struct redlock_actions *actions);

/* When to try again, after a random delay. */
int64_t redlock_lease_retry_ns(struct redlock_lease_core *lease, int64_t now_ns);

/* Whether an EXTEND event is allowed now: REDLOCK_OK, REDLOCK_ERR_BUSY or REDLOCK_ERR_LOST. */
int redlock_lease_extend_check(const struct redlock_lease_core *lease, int64_t now_ns);

/* The nodes that back a held lease by now. */
static inline redlock_nodes redlock_lease_backing_nodes(const struct redlock_lease_core *lease) {
    return lease->backing_grows ? lease->keys.backing | lease->votes.granted : lease->keys.backing;
}

/* The first relation between the lease's fields that does not hold, in words; NULL if all do. They
 * hold after each step; the simulator and debug builds check that. `truthful`: no node says what
 * cannot be, such as a grant of a key that it surely refused. Some relations need that. */
const char *redlock_lease_check(const struct redlock_lease_core *lease, bool truthful);

#endif
