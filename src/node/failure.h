/* Why a connection failed, and when to try again. */
#ifndef REDLOCK_NODE_FAILURE_H
#define REDLOCK_NODE_FAILURE_H

#include "node/node_state.h"

#define REDLOCK_NODE_FAILURES_MAX 64 /* more make no difference to the delay */

/* Counts a failure in *failures and returns the delay before the next try (R16). A connection that
 * stood long enough since up_ns is no failed try. REDLOCK_NEVER_NS: it never stood. */
int64_t redlock_node_delay_ns(struct redlock_node *node, unsigned *failures, int64_t up_ns);

/* The text for a failed read. 0: the node closed the connection; EPROTO: what TLS says. */
struct redlock_text *redlock_node_read_text(const struct redlock_connection *connection, int error);

/* The text of an errno: "connection refused" for ECONNREFUSED. */
struct redlock_text *redlock_node_errno_text(const char *prefix, int error);

/* The text for what is no reply (REDLOCK_RECEIVED_PROTOCOL). hint: for the end of its question, or
 * "". */
struct redlock_text *redlock_node_garbled_text(const struct redlock_connection *connection, const char *hint);

/* An answer that nobody has asked for (R20). */
struct redlock_text *redlock_node_unasked_text(void);

#endif
