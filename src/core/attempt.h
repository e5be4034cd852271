/* An attempt to acquire: the states before HELD. */
#ifndef REDLOCK_CORE_ATTEMPT_H
#define REDLOCK_CORE_ATTEMPT_H

#include "core/lease_state.h"

void redlock_attempt_begin(struct redlock_lease_core *lease, const struct redlock_event *event,
                           struct redlock_actions *actions);
void redlock_attempt_decide(struct redlock_lease_core *lease, const struct redlock_event *event,
                            struct redlock_actions *actions);
/* An event while QUEUED. */
void redlock_attempt_queued(struct redlock_lease_core *lease, const struct redlock_event *event,
                            struct redlock_actions *actions);
void redlock_attempt_void(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions);
void redlock_attempt_end(struct redlock_lease_core *lease, int code, struct redlock_actions *actions);

#endif
