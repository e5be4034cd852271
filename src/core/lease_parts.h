/* What the files of the lease's state machine share: lease.c, attempt.c, extension.c. */
#ifndef REDLOCK_CORE_LEASE_PARTS_H
#define REDLOCK_CORE_LEASE_PARTS_H

#include "core/lease.h"

/* lease.c */

/* R1: the round starts now, before its first byte is sent. */
void redlock_lease_start_round(struct redlock_lease_core *lease, enum redlock_operation operation, redlock_nodes nodes,
                               int64_t now_ns, struct redlock_actions *actions);
/* R8. Not twice: the nodes are somebody else's duty from here on. */
void redlock_lease_clean_up(struct redlock_lease_core *lease, struct redlock_actions *actions);

/* attempt.c: from begin to HELD */
void redlock_attempt_begin(struct redlock_lease_core *lease, const struct redlock_event *event,
                           struct redlock_actions *actions);
void redlock_attempt_decide(struct redlock_lease_core *lease, const struct redlock_event *event,
                            struct redlock_actions *actions);
void redlock_attempt_void(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions);
void redlock_attempt_end(struct redlock_lease_core *lease, int code, struct redlock_actions *actions);

/* extension.c: from HELD on */

/* A tenth of the ttl after the start: time to heal. An attempt's timer is for this already, so that to win it moves no timer. */
int64_t redlock_extension_heal_ns(const struct redlock_lease_core *lease);
/* The current round is WON, in time. */
void redlock_extension_hold(struct redlock_lease_core *lease, int64_t now_ns);
/* HELD at some time: renewals, healing. */
void redlock_extension_due(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
void redlock_extension_ask(struct redlock_lease_core *lease, const struct redlock_event *event,
                           struct redlock_actions *actions);
void redlock_extension_decide(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
/* A vote of the last round came after it was decided. */
void redlock_extension_late(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
void redlock_extension_void(struct redlock_lease_core *lease, redlock_nodes nodes, int64_t now_ns,
                            struct redlock_actions *actions);
/* The deadline has come, of the lease or, where it was never held, of the round. */
void redlock_extension_pass_deadline(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions);
void redlock_extension_answer(struct redlock_lease_core *lease, int code, struct redlock_actions *actions);

enum redlock_lease_loss { REDLOCK_LOST_AT_DEADLINE, REDLOCK_LOST_BY_VOTES, REDLOCK_LOST_BY_CLOCK };
void redlock_extension_lose(struct redlock_lease_core *lease, enum redlock_lease_loss how,
                            struct redlock_actions *actions);

/* The nodes that may have the current token's key, by what is known now. */
redlock_nodes redlock_extension_keepers(const struct redlock_lease_core *lease);

#endif
