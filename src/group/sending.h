/* What one lease sends: tokens, rounds, HEAL, and a request again by its source. */
#ifndef REDLOCK_GROUP_SENDING_H
#define REDLOCK_GROUP_SENDING_H

#include "group/handle.h"

/* `for_place`: its ticket is that of the acquire; otherwise it is 0, for a first try. An acquire
 * that never queues has no ticket in its tokens. */
int redlock_sending_draw_token(struct redlock_lease *lease, int64_t now_ns, bool for_place);

/* Sends the round of the core. Returns the nodes that refused it. */
redlock_nodes redlock_sending_round(struct redlock_lease *lease, const struct redlock_actions *actions);

/* A HEAL is not a round: its answers are not votes, but the release goes to these nodes, too. Sends
 * nothing to a node in quarantine. The next extension would count the healed key there, while a key
 * that the node forgot may still back another lease. */
void redlock_sending_heal(struct redlock_lease *lease, redlock_nodes asked);

/* A node did not do it in this form (R11): sends the request again in the other, if its vote is
 * still needed; with the source, once. */
bool redlock_sending_again(struct redlock_lease *lease, unsigned node, enum redlock_again again);

#endif
