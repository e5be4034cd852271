/* Draws a fresh token for each attempt (R10). */
#ifndef REDLOCK_GROUP_TOKEN_H
#define REDLOCK_GROUP_TOKEN_H

#include "group/lease_memory.h"

/* `for_place`: its ticket is that of the acquire; otherwise it is 0, for a first try. An acquire
 * that never queues has no ticket in its tokens. */
int redlock_lease_draw_token(struct redlock_lease *lease, int64_t now_ns, bool for_place);

#endif
