/* What the owner of a lease is told: results of its requests, and its loss. */
#ifndef REDLOCK_GROUP_CALLBACKS_H
#define REDLOCK_GROUP_CALLBACKS_H

#include "group/lease_memory.h"

/* Runs what waits to be told of one lease, and frees it if that was the last. */
void redlock_lease_run_callbacks(struct redlock_lease *lease);

#endif
