/* What nodes tell a group of the queues: pushes, and whether they can be heard. */
#ifndef REDLOCK_GROUP_HANDOVER_H
#define REDLOCK_GROUP_HANDOVER_H

#include "group/lease_memory.h"

/* See redlock_group_pushed(), redlock_group_listens() and redlock_group_moved(). */
void redlock_handover_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push);
/* Under the clock guard: the node's clock was read after the push of this round, or not. */
void redlock_handover_timed(struct redlock_lease *lease, unsigned node, uint32_t round, bool known);
void redlock_handover_listens(struct redlock_group *group, unsigned node, enum redlock_listening listening,
                              const struct redlock_text *why);
void redlock_handover_moved(struct redlock_group *group, unsigned node);

#endif
