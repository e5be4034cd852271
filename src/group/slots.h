/* The slots of a lease with permits: what a take asks for, what nodes gave, and what goes back. */
#ifndef REDLOCK_GROUP_SLOTS_H
#define REDLOCK_GROUP_SLOTS_H

#include "group/handle.h"

/* The next round of the lease is a take at these nodes. */
void redlock_slots_begin(struct redlock_lease *lease, redlock_nodes asked);
/* Where we stand while we take, in `room`; NULL if we do not stand at the gate. */
const struct redlock_gate *redlock_slots_gate(const struct redlock_lease *lease, struct redlock_gate *room);
static inline bool redlock_slots_is_take(const struct redlock_lease *lease, uint32_t round) {
    return round != REDLOCK_ROUND_HEAL && redlock_handle_permits(lease)->round == round;
}
/* Takes a node's answer to the last take. One that no node of ours gives becomes UNKNOWN. Returns
 * the nodes whose votes count now, and releases what they gave beside the slots of the lease. */
redlock_nodes redlock_slots_note(struct redlock_lease *lease, unsigned node, struct redlock_answer *answer);
/* The vote of such a node. `answer` is its own, if it is the one that came now. */
struct redlock_answer redlock_slots_vote(const struct redlock_lease *lease, unsigned node,
                                         const struct redlock_answer *answer, int64_t read_ns);
/* The library makes this release (R8): of the lease's slots, or of all that a take may have got. */
void redlock_slots_owe(const struct redlock_lease *lease, redlock_nodes nodes, redlock_nodes uncertain);

#endif
