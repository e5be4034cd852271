/* What nodes tell of leases: answers to their requests, pushes, and whether pushes can be heard. */
#ifndef REDLOCK_GROUP_VOTES_H
#define REDLOCK_GROUP_VOTES_H

#include "group/handle.h"

/* If this grant is of a lease that never queues, without guards, and the round can only be won by
 * it, or goes on, counts it and returns true. */
bool redlock_votes_count(struct redlock_group *group, struct redlock_lease *lease, uint32_t round, unsigned node,
                         int64_t read_ns);
/* Takes an answer to the request of this round. May free the lease. */
void redlock_votes_answer(struct redlock_lease *lease, uint32_t round, unsigned node,
                          const struct redlock_answer *answer);
/* See redlock_group_pushed(), redlock_group_listens() and redlock_group_moved(). */
void redlock_votes_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push);
void redlock_votes_listens(struct redlock_group *group, unsigned node, enum redlock_listening listening,
                           const struct redlock_text *why);
void redlock_votes_moved(struct redlock_group *group, unsigned node);

#endif
