/* TLS on either connection of a node, before the first request. */
#ifndef REDLOCK_NODE_SECURE_H
#define REDLOCK_NODE_SECURE_H

#include "node/node_state.h"

/* Begins TLS on an opened connection, with certificates as they are now. Returns false without
 * memory. */
bool redlock_secure_begin(const struct redlock_node *node, struct redlock_connection *connection);

/* Goes on, now that the socket is ready. *why is set with FAILED. */
enum redlock_securing redlock_secure_io(struct redlock_connection *connection, unsigned events,
                                        struct redlock_text **why);

/* The text for a node that did not answer in TLS, or not to the end. */
struct redlock_text *redlock_secure_late_text(const struct redlock_node *node,
                                              const struct redlock_connection *connection);

#endif
