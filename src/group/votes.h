/* What answers to a lease's requests mean as votes. */
#ifndef REDLOCK_GROUP_VOTES_H
#define REDLOCK_GROUP_VOTES_H

#include "group/lease_memory.h"

/* Takes an answer to the request of this round. May free the lease. */
void redlock_lease_answer(struct redlock_lease *lease, uint32_t round, unsigned node,
                          const struct redlock_answer *answer);

#endif
