/* Calls the callbacks of a lease: the results of its requests, and its loss. */
#ifndef REDLOCK_GROUP_CALLBACKS_H
#define REDLOCK_GROUP_CALLBACKS_H

#include "group/lease_memory.h"

/* Runs the waiting callbacks of one lease. Then frees the lease if it is over. */
void redlock_lease_run_callbacks(struct redlock_lease *lease);

#endif
