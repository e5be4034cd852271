/* Permits: which slots an acquire asks for, whether nodes gave it the same ones, and when it stands
 * at the gate (docs/protocols.md, "Permits"). Pure. */
#ifndef REDLOCK_CORE_PERMITS_H
#define REDLOCK_CORE_PERMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quorum.h"

/* What nodes gave to one take. A node gives all slots that were asked for, or none. */
struct redlock_ballot {
    redlock_nodes asked;
    redlock_nodes gave;    /* slots, */
    redlock_nodes nothing; /* or none: it refused, failed, or did not answer */
    uint8_t quorum, permits;
    uint16_t *slots; /* borrowed: `permits` of each node, as it found them */
};

enum redlock_ballot_outcome { REDLOCK_BALLOT_OPEN, REDLOCK_BALLOT_WON, REDLOCK_BALLOT_LOST };

static inline uint16_t *redlock_ballot_slots(const struct redlock_ballot *ballot, unsigned node) {
    return ballot->slots + (size_t)node * ballot->permits;
}

/* The node gave these slots; NULL for none. Its first answer counts. Returns whether it is this. */
bool redlock_ballot_note(struct redlock_ballot *ballot, unsigned node, const uint16_t *slots);
/* The nodes that gave what this one gave. */
redlock_nodes redlock_ballot_alike(const struct redlock_ballot *ballot, unsigned node);
/* WON: a quorum gave what `node` gave. LOST: no quorum can have given the same any more. */
enum redlock_ballot_outcome redlock_ballot_outcome(const struct redlock_ballot *ballot, unsigned *node);

/*
 * state     event                       → state     action
 * TRYING    lost, and the acquire goes on
 *                                       → QUEUING   ask for the gate; with REDLOCK_ORDER_NONE: none
 * QUEUING   the gate is ours            → CHOOSING  admit
 *           no gate                     → QUEUING   fail
 * CHOOSING  lost; slots were told meanwhile, and a quorum has told of some, or gave some
 *                                       → CHOOSING  admit
 *           told, by a quorum since the last take began, and nothing is under way
 *                                       → CHOOSING  admit
 *           the gate is lost            → QUEUING   exclude, ask for the gate
 * all of them
 *           ended: the slots are ours, or nobody wants them any more
 *                                       → OVER      leave the gate, if we stand there or wait
 *
 * "Admit": the lease takes now, and after each retry delay from now on. "Exclude": it takes no
 * more. An event that is not listed changes nothing.
 */
enum redlock_permits_state {
    REDLOCK_PERMITS_TRYING,
    REDLOCK_PERMITS_QUEUING,
    REDLOCK_PERMITS_CHOOSING,
    REDLOCK_PERMITS_OVER
};

enum redlock_permits_event {
    REDLOCK_PERMITS_LOST,
    REDLOCK_PERMITS_GATE_HELD,
    REDLOCK_PERMITS_NO_GATE,
    REDLOCK_PERMITS_GATE_LOST,
    REDLOCK_PERMITS_TOLD,
    REDLOCK_PERMITS_ENDED
};

enum redlock_permits_action {
    REDLOCK_PERMITS_NOTHING,
    REDLOCK_PERMITS_ASK_GATE,
    REDLOCK_PERMITS_ADMIT,
    REDLOCK_PERMITS_EXCLUDE, /* and ask for the gate */
    REDLOCK_PERMITS_FAIL,
    REDLOCK_PERMITS_LEAVE_GATE
};

struct redlock_permits_core {
    enum redlock_permits_state state : 8;
    bool in_order; /* it may stand at the gate */
    bool taking;   /* a take is under way */
    uint16_t limit;
    uint16_t first, window; /* of this take: where a node begins, and how many it looks at */
    uint16_t next;          /* where the next take begins; `limit`: anywhere */
    redlock_nodes told;     /* nodes that told of a slot since the last take began */
    struct redlock_ballot ballot;
};

/* `slots` has room for `permits` of each node. */
void redlock_permits_init(struct redlock_permits_core *permits, unsigned limit, unsigned count, unsigned quorum,
                          bool in_order, uint16_t *slots);
/* A take begins at these nodes. `random` chooses the slot from which on they look. */
void redlock_permits_take(struct redlock_permits_core *permits, redlock_nodes asked, uint32_t random);
/* A node says that this slot is free: REDLOCK_PERMITS_TOLD. */
enum redlock_permits_action redlock_permits_tell(struct redlock_permits_core *permits, redlock_nodes node,
                                                 unsigned slot);
enum redlock_permits_action redlock_permits_step(struct redlock_permits_core *permits,
                                                 enum redlock_permits_event event);

#endif
