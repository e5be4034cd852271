/* A lease that is held: extends, renews, heals and loses it. */
#ifndef REDLOCK_CORE_HELD_H
#define REDLOCK_CORE_HELD_H

#include "core/lease_state.h"

/* When to heal: a tenth of the ttl after the start. The timer of an attempt is set to this time
 * already, so winning the attempt moves no timer. */
int64_t redlock_held_heal_ns(const struct redlock_lease_core *lease);
/* The current round is WON in time. */
void redlock_held_begin(struct redlock_lease_core *lease, int64_t now_ns);
/* From now on it renews itself as the plan says: until now we did, for our own sake. */
void redlock_held_settle(struct redlock_lease_core *lease, const struct redlock_plan *plan, int64_t now_ns);
/* When to tell that the deadline is near; REDLOCK_NEVER_NS: not, or not again. */
int64_t redlock_held_expiring_ns(const struct redlock_lease_core *lease);
/* The clock was read before the deadline: tells that it is near, and while HELD renews or heals
 * what is due. */
void redlock_held_due(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
void redlock_held_extend(struct redlock_lease_core *lease, const struct redlock_event *event,
                         struct redlock_actions *actions);
void redlock_held_decide(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
/* A vote came after its round was decided. */
void redlock_held_late(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
void redlock_held_void(struct redlock_lease_core *lease, redlock_nodes nodes, int64_t now_ns,
                       struct redlock_actions *actions);
/* These nodes can be asked again, and so can a quorum. */
void redlock_held_ready(struct redlock_lease_core *lease, redlock_nodes nodes, int64_t now_ns);
/* The deadline of the lease has passed; of a lease that was never held, the deadline of the
 * round. */
void redlock_held_pass_deadline(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
void redlock_held_answer(struct redlock_lease_core *lease, int code, struct redlock_actions *actions);

enum redlock_lease_loss { REDLOCK_LOST_AT_DEADLINE, REDLOCK_LOST_BY_VOTES, REDLOCK_LOST_BY_CLOCK };
void redlock_held_lose(struct redlock_lease_core *lease, enum redlock_lease_loss how, struct redlock_actions *actions);

#endif
