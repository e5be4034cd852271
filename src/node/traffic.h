/* Reads and writes on an open connection, and a node that stalls (R6, R7, R11, R17, R20). */
#ifndef REDLOCK_NODE_TRAFFIC_H
#define REDLOCK_NODE_TRAFFIC_H

#include "node/node_state.h"

/* For the watch of the node's connection: INTRODUCING, READY, STALLED. */
void redlock_traffic_io(struct redlock_watch *watch, unsigned events);
void redlock_traffic_flush(struct redlock_watch *watch);

/* Any phase. */
void redlock_traffic_due(struct redlock_node *node, int64_t now_ns);

#endif
