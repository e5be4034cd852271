/* The states of a lease, what goes into its state machine and comes out, and its memory. */
#ifndef REDLOCK_CORE_LEASE_STATE_H
#define REDLOCK_CORE_LEASE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fence.h"
#include "core/keys.h"
#include "core/operation.h"
#include "core/quorum.h"

/*
 * States, and what each event does. What is not here changes nothing. "cleanup" is a release of the current token on
 * every node that was asked for it and whose vote on that is not FAILED (R8).
 *
 * IDLE       park                 → PARKED     until nodes are known, or for so long
 *            begin                → ACQUIRING  send ACQUIRE to all
 *            begin, ttl <= drift  → ENDED      acquired TOO_SLOW; nothing is sent
 *            adopt                → ADOPTED
 * PARKED     begin, time is over  → as IDLE    begin
 *            cancel               → ENDED      acquired CANCELLED (or CLOSED)
 * ACQUIRING  WON in time          → HELD       acquired OK
 *            WON in time, but a fencing token is wanted and no quorum took the proposal
 *                                 → FENCING    send FENCE where the lock may be ours
 *            LOST and the reason is known, WON too late, or the deadline; time left to wait
 *                                 → WAITING    cleanup
 *            the same, no time left, or the wait is over
 *                                 → ENDED      cleanup, acquired CONTENDED | NO_QUORUM | TOO_SLOW
 *            cancel               → ENDED      cleanup, acquired CANCELLED (or CLOSED)
 * FENCING    WON in time          → HELD       acquired OK
 *            LOST to a higher counter
 *                                 → FENCING    send FENCE again, with a number above it
 *            all else             as ACQUIRING
 * WAITING    time to retry        → ACQUIRING  send ACQUIRE to all, under a fresh token (R10)
 *            wait is over         → ENDED      acquired with the last attempt's reason
 *            cancel               → ENDED      acquired CANCELLED (or CLOSED)
 * ADOPTED    extend               → EXTENDING  send EXTEND to all
 *            release              → RELEASING  send RELEASE to all
 * HELD       extend, renewal      → EXTENDING  send EXTEND to all; the deadline stands until the round is won (R12)
 *            time to heal         → HELD       heal the nodes that have not granted, if any
 *            deadline             → LOST       cleanup, lost
 *            late vote; by now fewer than a quorum may have the key
 *                                 → LOST       cleanup, lost by votes
 *            late vote; keys that the deadline stands on are missing, and the last EXTEND, with a shorter ttl, was WON
 *                                 → HELD       its deadline is what is left; LOST if that has passed
 *            release              → RELEASING  send RELEASE where the cleanup would go
 * EXTENDING  WON                  → HELD       extended OK; the deadline anew from the round's own start
 *            fewer than a quorum may have the key
 *                                 → LOST       cleanup, lost by votes, extended LOST
 *            LOST otherwise       → HELD       extended NO_QUORUM; a renewal is tried again until the deadline
 *            deadline             → LOST       cleanup, lost, extended LOST
 *            extend               → EXTENDING  only over an automatic renewal, whose votes become stale
 *            release              → RELEASING  send RELEASE where the cleanup would go, extended CANCELLED
 * RELEASING  WON                  → ENDED      released OK
 *            most nodes say missing or foreign, or were not asked
 *                                 → ENDED      released LOST: proven, R15
 *            all votes are in, and neither
 *                                 → ENDED      released NO_QUORUM
 *            void (in any of ACQUIRING, FENCING, HELD, EXTENDING): the votes of these nodes are counted no more; too few are left
 *                                 → LOST       cleanup, lost by a clock (before HELD: a lost attempt)
 * LOST       extend               → LOST       extended LOST
 *            release              → ENDED      released LOST
 * ENDED
 *
 * A node may have the key unless it surely refused the SET (DENIED, FAILED, not asked), or said
 * "missing" or "another token" since, and was not healed after that. What is known to be lost is
 * LOST, at the vote that shows it. An adopted lease that was never held has no deadline to keep:
 * where its first EXTEND fails it is ADOPTED again (NO_QUORUM, TOO_SLOW if a quorum came too late),
 * and where too few may have the key, it is LOST without `lost`. With a lock delay the keys outlive
 * the lease by it, and the cleanup of LOST is left out: they end by their ttl. A release at or
 * after the deadline then finds the lease LOST, also where no timer has said so yet. Nodes that a
 * guard keeps from voting are not asked in ACQUIRE. Where they leave no quorum, the attempt is
 * lost with nothing sent. An extend whose ttl leaves no validity at all sends nothing and changes
 * nothing: extended TOO_SLOW.
 *
 * The deadline goes first: at and after it no vote counts and nothing is extended (R3, R12), however late the clock was
 * read. Only a release does not care: its votes tell whether the lock was still ours.
 *
 * Votes of an earlier round than the current one are stale: they are counted nowhere (the release that follows them
 * settles the node). Late votes of the current round, after it is decided, still set the round's sets: they decide
 * which nodes a release goes to.
 */
enum redlock_lease_state {
    REDLOCK_LEASE_IDLE,
    REDLOCK_LEASE_PARKED,
    REDLOCK_LEASE_ACQUIRING,
    REDLOCK_LEASE_FENCING,
    REDLOCK_LEASE_WAITING,
    REDLOCK_LEASE_ADOPTED,
    REDLOCK_LEASE_HELD,
    REDLOCK_LEASE_EXTENDING,
    REDLOCK_LEASE_RELEASING,
    REDLOCK_LEASE_LOST,
    REDLOCK_LEASE_ENDED
};

/* What the caller asked for; constant over the lease's life but for ttl_ms. */
struct redlock_plan {
    int64_t wait_timeout_ms;
    int32_t ttl_ms;
    int32_t lock_delay_ms; /* the keys live longer than the lease by this */
    int32_t retry_delay_min_ms, retry_delay_max_ms;
    int64_t auto_extend_max_ms; /* no renewal is sent from then on; the last one before may reach beyond; 0 for never */
    bool auto_extend;
    bool heal;
    bool fencing;
    uint16_t fence_client; /* low digits of its numbers */
};

enum redlock_event_type {
    REDLOCK_EVENT_PARK,    /* plan, until_ns */
    REDLOCK_EVENT_BEGIN,   /* plan */
    REDLOCK_EVENT_ADOPT,   /* plan */
    REDLOCK_EVENT_VOTE,    /* nodes (one), vote, round; accepted, counter */
    REDLOCK_EVENT_REFUSED, /* nodes (any number): FAILED votes of the current round, nothing was sent */
    REDLOCK_EVENT_VOID,    /* nodes (any number): their votes up to now are void, for their clock has jumped */
    REDLOCK_EVENT_TIMER,   /* the clock was read; something may be due */
    REDLOCK_EVENT_CANCEL,  /* code: REDLOCK_ERR_CANCELLED, REDLOCK_ERR_CLOSED: why the acquire is given up */
    REDLOCK_EVENT_EXTEND,  /* ttl_ms; a caller's, see redlock_lease_extend_check() */
    REDLOCK_EVENT_RELEASE
};

struct redlock_event {
    enum redlock_event_type type;
    int64_t now_ns;
    int64_t until_ns;
    redlock_nodes nodes;
    redlock_vote_kind vote;
    uint32_t round;
    int64_t ttl_ms;
    int code;
    bool accepted;              /* the node raised its counter to the lease's fencing token */
    uint64_t counter;           /* or told that it has this one; 0 for neither */
    redlock_nodes may_not_vote; /* BEGIN, TIMER: these may not vote on an acquire */
    int64_t wall_us;            /* BEGIN, TIMER, VOTE of a lease with fencing: the wall clock */
    const struct redlock_plan *plan;
};

/* What to do, in this order: cleanup, send, then tell. Zeroed by each step. Codes are meaningful only with their flag.
 */
struct redlock_actions {
    redlock_nodes cleanup;       /* release the current token there */
    redlock_nodes uncertain;     /* of these, the ones where the key may still be set late */
    enum redlock_operation send; /* to send_nodes, as round number `round`; ACQUIRE takes a fresh token */
    redlock_nodes send_nodes;
    uint32_t round;
    redlock_nodes heal;  /* set the key again there, under the current token, outside of any round */
    bool lost;           /* tell the owner, once */
    bool lost_by_votes;  /* because most nodes say that the key is not ours, not because of the deadline */
    bool deadline_moved; /* by a late vote: the state is the same, the deadline is not */
    bool lost_by_clock;  /* because clocks of nodes jumped, and too few votes are left */
    bool acquired, extended, released;
    int acquired_code, extended_code, released_code;
};

/* What every vote reads comes first, side by side in memory. */
struct redlock_lease_core {
    enum redlock_lease_state state;
    enum redlock_operation operation; /* of the current round */
    uint32_t round;                   /* number of the current round; rises by one a round */
    struct redlock_round votes;       /* of the current round */
    struct redlock_keys keys;         /* of the current token */
    int64_t start_ns;                 /* of the current round */
    int64_t deadline_ns;              /* of the lease; while ACQUIRING, what it would be */
    int64_t wait_until_ns;
    struct redlock_plan plan;
    uint32_t attempts;
    uint32_t jitter;
    uint8_t node_count;
    bool extend_by_caller; /* the EXTENDING round completes a caller's request, not only a renewal */
    bool was_held;
    bool is_adopted;
    bool backing_grows;     /* the current round made the lease: nodes that grant it late back it, too */
    bool fence_written;     /* the fencing token took a second round trip */
    int last_code;          /* why the last attempt was lost */
    int32_t round_ttl_ms;   /* that the current round sent */
    int64_t begun_ns;       /* HELD since (the cap counts from here) */
    int64_t next_try_ns;    /* next attempt or renewal */
    int64_t heal_ns;        /* time to heal, */
    int64_t heal_before_ns; /* but not at or after this */
    struct redlock_fence fence;
};

/* R1: the round starts now, before its first byte is sent. */
void redlock_lease_start_round(struct redlock_lease_core *lease, enum redlock_operation operation, redlock_nodes nodes,
                               int64_t now_ns, struct redlock_actions *actions);
/* R8. Not twice: the nodes are somebody else's duty from here on. */
void redlock_lease_clean_up(struct redlock_lease_core *lease, struct redlock_actions *actions);

#endif
