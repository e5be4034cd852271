/* From an address to a connection that may carry requests: resolve, open, secure, greet (R16,
 * R18). */
#ifndef REDLOCK_NODE_CONNECT_H
#define REDLOCK_NODE_CONNECT_H

#include "node/node_state.h"

void redlock_connect_begin(struct redlock_node *node);

/* RESOLVING, OPENING, SECURING */
void redlock_connect_io(struct redlock_node *node, unsigned events);

/* Any phase that is CONNECTING. */
void redlock_connect_due(struct redlock_node *node, int64_t now_ns);

/* GREETING */
void redlock_connect_reply(struct redlock_node *node, const struct redlock_reply *reply);

#endif
