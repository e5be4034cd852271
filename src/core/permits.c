/* The tables of core/permits.h. */
#include "core/permits.h"

#include <assert.h>
#include <string.h>

#include "core/planted.h"

/* Where nine in ten slots are taken, 32 in a row are so in 1 of 29 cases. */
#define LOOKS_A_PERMIT 32
/* Who stands at the gate looks alone. A node needs 0.1 ms for so many. */
#define LOOKS_AT_GATE 256

bool redlock_ballot_note(struct redlock_ballot *ballot, unsigned node, const uint16_t *slots) {
    const redlock_nodes at = REDLOCK_NODE(node);
    if ((ballot->asked & ~(ballot->gave | ballot->nothing) & at) == 0) {
        return false;
    }
    if (slots) {
        memcpy(redlock_ballot_slots(ballot, node), slots, ballot->permits * sizeof *slots);
        ballot->gave |= at;
    } else {
        ballot->nothing |= at;
    }
    return true;
}

redlock_nodes redlock_ballot_alike(const struct redlock_ballot *ballot, unsigned node) {
    const uint16_t *slots = redlock_ballot_slots(ballot, node);
    redlock_nodes alike = 0;
    for (redlock_nodes at = ballot->gave; at != 0; at &= at - 1) {
        const unsigned other = redlock_nodes_first(at);
        if (memcmp(slots, redlock_ballot_slots(ballot, other), ballot->permits * sizeof *slots) == 0 ||
            REDLOCK_PLANTED(PERMITS_ANY_SLOTS)) {
            alike |= REDLOCK_NODE(other);
        }
    }
    return alike;
}

enum redlock_ballot_outcome redlock_ballot_outcome(const struct redlock_ballot *ballot, unsigned *node) {
    const unsigned open = redlock_nodes_count(ballot->asked & ~(ballot->gave | ballot->nothing));
    unsigned most = 0;
    for (redlock_nodes at = ballot->gave; at != 0; at &= at - 1) {
        const unsigned count = redlock_nodes_count(redlock_ballot_alike(ballot, redlock_nodes_first(at)));
        if (count > most) {
            most = count;
            *node = redlock_nodes_first(at);
        }
    }
    return most >= ballot->quorum          ? REDLOCK_BALLOT_WON
           : most + open >= ballot->quorum ? REDLOCK_BALLOT_OPEN
                                           : REDLOCK_BALLOT_LOST;
}

void redlock_permits_init(struct redlock_permits_core *permits, unsigned limit, unsigned count, unsigned quorum,
                          bool in_order, uint16_t *slots) {
    assert(count > 0 && count <= limit && limit < UINT16_MAX && slots);
    *permits =
        (struct redlock_permits_core){.state = REDLOCK_PERMITS_TRYING,
                                      .in_order = in_order,
                                      .limit = (uint16_t)limit,
                                      .next = (uint16_t)limit,
                                      .ballot = {.quorum = (uint8_t)quorum, .permits = (uint8_t)count, .slots = slots}};
}

static unsigned window(const struct redlock_permits_core *permits) {
    const unsigned count = permits->ballot.permits;
    if (permits->state != REDLOCK_PERMITS_CHOOSING) {
        return LOOKS_A_PERMIT * count;
    }
    return count > 1 ? permits->limit : LOOKS_AT_GATE;
}

void redlock_permits_take(struct redlock_permits_core *permits, redlock_nodes asked, uint32_t random) {
    const unsigned limit = permits->limit, looks = window(permits);
    permits->window = (uint16_t)(looks < limit ? looks : limit);
    permits->first = (uint16_t)(permits->next < limit ? permits->next : random % limit);
    permits->next = (uint16_t)((permits->first + permits->window) % limit);
    permits->told = 0;
    permits->taking = true;
    permits->ballot.asked = asked;
    permits->ballot.gave = permits->ballot.nothing = 0;
}

enum redlock_permits_action redlock_permits_tell(struct redlock_permits_core *permits, redlock_nodes node,
                                                 unsigned slot) {
    permits->told |= node;
    permits->next = slot < permits->limit ? (uint16_t)slot : permits->next;
    return redlock_permits_step(permits, REDLOCK_PERMITS_TOLD);
}

static bool is_quorum(const struct redlock_permits_core *permits, redlock_nodes nodes) {
    return redlock_nodes_count(nodes) >= permits->ballot.quorum;
}

/* A node that gave a slot, which was not free elsewhere, need not tell of it. */
static enum redlock_permits_action lost_at_gate(const struct redlock_permits_core *permits) {
    return permits->told != 0 && is_quorum(permits, permits->told | permits->ballot.gave) ? REDLOCK_PERMITS_ADMIT
                                                                                          : REDLOCK_PERMITS_NOTHING;
}

static enum redlock_permits_action become(struct redlock_permits_core *permits, enum redlock_permits_state state,
                                          enum redlock_permits_action action) {
    permits->state = state;
    return action;
}

enum redlock_permits_action redlock_permits_step(struct redlock_permits_core *permits,
                                                 enum redlock_permits_event event) {
    const enum redlock_permits_state state = permits->state;
    permits->taking = permits->taking && event != REDLOCK_PERMITS_LOST;
    if (event == REDLOCK_PERMITS_ENDED) {
        return become(permits, REDLOCK_PERMITS_OVER,
                      state == REDLOCK_PERMITS_QUEUING || state == REDLOCK_PERMITS_CHOOSING ? REDLOCK_PERMITS_LEAVE_GATE
                                                                                            : REDLOCK_PERMITS_NOTHING);
    }
    switch (state) {
    case REDLOCK_PERMITS_TRYING:
        if (event == REDLOCK_PERMITS_LOST && permits->in_order) {
            return become(permits, REDLOCK_PERMITS_QUEUING, REDLOCK_PERMITS_ASK_GATE);
        }
        break;
    case REDLOCK_PERMITS_QUEUING:
        if (event == REDLOCK_PERMITS_GATE_HELD) {
            return become(permits, REDLOCK_PERMITS_CHOOSING, REDLOCK_PERMITS_ADMIT);
        }
        return event == REDLOCK_PERMITS_NO_GATE ? REDLOCK_PERMITS_FAIL : REDLOCK_PERMITS_NOTHING;
    case REDLOCK_PERMITS_CHOOSING:
        if (event == REDLOCK_PERMITS_GATE_LOST) {
            return become(permits, REDLOCK_PERMITS_QUEUING, REDLOCK_PERMITS_EXCLUDE);
        }
        if (event == REDLOCK_PERMITS_LOST) {
            return lost_at_gate(permits);
        }
        return event == REDLOCK_PERMITS_TOLD && !permits->taking && is_quorum(permits, permits->told)
                   ? REDLOCK_PERMITS_ADMIT
                   : REDLOCK_PERMITS_NOTHING;
    case REDLOCK_PERMITS_OVER:
        break;
    }
    return REDLOCK_PERMITS_NOTHING;
}
