/* Reads and writes on an open connection, and a node that stalls (R6, R7, R17, R20). */
#ifndef REDLOCK_NODE_TRAFFIC_H
#define REDLOCK_NODE_TRAFFIC_H

#include "node/node_state.h"

/* GREETING, READY, STALLED */
void redlock_traffic_io(struct redlock_node *node, unsigned events);
void redlock_traffic_flush(struct redlock_node *node);

/* Any phase. */
void redlock_traffic_due(struct redlock_node *node, int64_t now_ns);

#endif
