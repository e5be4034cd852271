/* From one state of a node to the next: why, the end of a connection, the wait for the next try. */
#ifndef REDLOCK_NODE_PHASE_H
#define REDLOCK_NODE_PHASE_H

#include "node/node_state.h"

/* Takes over the text: why the node is not READY. */
void redlock_node_set_phase(struct redlock_node *node, enum redlock_node_phase phase, struct redlock_text *why);

/* The try or the connection is over: closes it with RST (R9), answers what is in flight, waits for
 * the next try. Takes over the text. */
void redlock_node_lost(struct redlock_node *node, struct redlock_text *why);

/* Likewise, but the node may not vote until something changes at the server (R18). */
void redlock_node_unusable(struct redlock_node *node, struct redlock_text *why);

/* "connection refused" for ECONNREFUSED. */
struct redlock_text *redlock_node_errno_text(const char *prefix, int error);

/* The same server as the node named `rival` (R18). */
struct redlock_text *redlock_node_twice_text(const char *rival);

#endif
