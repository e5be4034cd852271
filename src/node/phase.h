/* A node's changes of state: the reason, the end of a connection, the wait for the next try. */
#ifndef REDLOCK_NODE_PHASE_H
#define REDLOCK_NODE_PHASE_H

#include "node/node_state.h"

/* Sets the phase and why the node is not READY. Takes over the text. */
void redlock_node_set_phase(struct redlock_node *node, enum redlock_node_phase phase, struct redlock_text *why);

/* The try or the connection has failed: closes it with RST (R9), answers what is in flight, waits
 * for the next try. Takes over the text. */
void redlock_node_lost(struct redlock_node *node, struct redlock_text *why);

/* The same, but the node may not vote until the server changes (R18). */
void redlock_node_unusable(struct redlock_node *node, struct redlock_text *why);

/* Counts a failure in *failures and returns the delay before the next try (R16). A connection that
 * stood long enough since up_ns is no failed try. REDLOCK_NEVER_NS: it never stood. */
int64_t redlock_node_delay_ns(struct redlock_node *node, unsigned *failures, int64_t up_ns);

/* The text for a failed read. 0: the node closed the connection. */
struct redlock_text *redlock_node_read_text(int error);

/* The text of an errno: "connection refused" for ECONNREFUSED. */
struct redlock_text *redlock_node_errno_text(const char *prefix, int error);

/* The text for a node that is the same server as `rival` (R18). */
struct redlock_text *redlock_node_twice_text(const char *rival);

#endif
