/* Draws a fresh token for each attempt (R10). */
#ifndef REDLOCK_GROUP_TOKEN_H
#define REDLOCK_GROUP_TOKEN_H

#include "group/lease_memory.h"

int redlock_lease_draw_token(struct redlock_lease *lease, int64_t now_ns);

#endif
