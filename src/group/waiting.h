/* A lease that waits in queues: its place, its votes and its pushes. */
#ifndef REDLOCK_GROUP_WAITING_H
#define REDLOCK_GROUP_WAITING_H

#include "group/handle.h"

/* Prepares an acquire for queues. False if there is no memory. */
bool redlock_waiting_prepare(struct redlock_lease *lease, uint64_t arrival_us, int64_t now_ns);
/* The ticket for its next token. It stays the same, unless it was wrong. */
uint64_t redlock_waiting_ticket(struct redlock_lease *lease);
/* Whether it waits under a wrong ticket: it was guessed before a quorum of clocks was known, or the
 * nodes' clock was corrected. */
bool redlock_waiting_is_misplaced(const struct redlock_lease *lease);
/* Before the lease is freed. */
void redlock_waiting_end(struct redlock_lease *lease);
/* A round of the lease was sent, and these nodes took it. */
void redlock_waiting_sent(struct redlock_lease *lease, const struct redlock_actions *actions, redlock_nodes taken);
/* The caller forgot the lease: its keys may count for another owner. */
void redlock_waiting_keep(struct redlock_lease *lease);
/* The nodes in this state of core/push.h; none for a lease that never queues. */
redlock_nodes redlock_waiting_nodes_in(const struct redlock_lease *lease, enum redlock_push_state state);
/* The core has stepped: counts what the waiter did, and follows it into the line and out of it. */
void redlock_waiting_stepped(struct redlock_lease *lease, enum redlock_lease_state before,
                             const struct redlock_actions *actions);
/* A place has a ticket by the nodes' clock. So WAIT goes to nobody before a quorum of nodes has
 * said what time it is (docs/waiting.md, "Order"). */
bool redlock_waiting_may_ask(const struct redlock_group *group);
/* The place that a WAIT asks for. Fills in the seals of these nodes; there is room for one of
 * each. */
struct redlock_place redlock_waiting_place(const struct redlock_lease *lease, redlock_nodes nodes, uint64_t *seals);

/* A node refuses the subscription. Returns whether too few nodes can keep a queue since then. */
bool redlock_waiting_note_refusing(struct redlock_group *group, unsigned node, const struct redlock_text *why);
/* The node cannot push to us any more, or not for now. Returns whether that leaves too few. */
bool redlock_waiting_note_deaf(struct redlock_group *group, unsigned node);
void redlock_waiting_note_listening(struct redlock_group *group, unsigned node);
/* A node failed a WAIT with this text. Returns whether too few nodes can keep the queue of this
 * resource: then the lease must try again after delays instead. */
bool redlock_waiting_must_poll(struct redlock_lease *lease, unsigned node, const struct redlock_text *text);

#endif
