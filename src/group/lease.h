/* One lease: steps its core, carries out what that says, takes its answers, and ends. */
#ifndef REDLOCK_GROUP_LEASE_H
#define REDLOCK_GROUP_LEASE_H

#include "group/lease_memory.h"

/* Room for a lease of this resource, in the group's list; NULL without memory. */
struct redlock_lease *redlock_lease_new(struct redlock_group *group, const char *resource, size_t key_size);
/* Steps the core and carries out what it says. */
void redlock_lease_feed(struct redlock_lease *lease, const struct redlock_event *event);
void redlock_lease_answer(struct redlock_lease *lease, uint32_t round, unsigned node,
                          const struct redlock_answer *answer);
void redlock_lease_due(struct redlock_lease *lease, int64_t now_ns);
/* Feeds the first event of an acquire. */
void redlock_lease_begin(struct redlock_lease *lease, const struct redlock_plan *plan, int64_t now_ns);
/* What the node granted up to now is void: why may be NULL without memory. */
void redlock_lease_void(struct redlock_lease *lease, unsigned node, struct redlock_text *why);
void redlock_lease_free_if_over(struct redlock_lease *lease);
/* The handle was forgotten: no answer and no time changes anything any more; freed once nothing is under way. */
void redlock_lease_retire(struct redlock_lease *lease);
void redlock_lease_free(struct redlock_lease *lease);

/* The group closes without the answers that a release still waits for: its caller is told CLOSED. */
void redlock_lease_abort(struct redlock_lease *lease);

#endif
