/* Connects the group of a manager to its loop and its nodes, in both directions. */
#ifndef REDLOCK_MANAGER_BRIDGE_H
#define REDLOCK_MANAGER_BRIDGE_H

#include "manager/manager_state.h"

/* How the group reaches the loop and the nodes. */
struct redlock_env redlock_bridge_env(redlock_manager *manager);
/* How the nodes reach the group. */
struct redlock_node_listener redlock_bridge_listener(redlock_manager *manager);

#endif
