/* A node's requests: sent, answered, timed out, lost with the connection (R4, R6, R7, R9, R11). */
#ifndef REDLOCK_NODE_REQUESTS_H
#define REDLOCK_NODE_REQUESTS_H

#include "node/node_state.h"

/* Returns false without memory. The position is set here. */
bool redlock_requests_queue(struct redlock_node *node, const char *bytes, size_t size,
                            struct redlock_inflight_entry *entry);

/* The node's own command; left out without memory, as the stall limit or the next NOSCRIPT sees to
 * it. */
void redlock_requests_queue_own(struct redlock_node *node, const char *bytes, size_t size, int64_t now_ns);

/* The reply to a request that was taken out of the queue, `in_time` unless it had timed out.
 * Answers the request if somebody still waits. Returns false for a reply that it cannot have. */
bool redlock_requests_reply(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                            const struct redlock_reply *reply, int64_t now_ns);

/* When the next request times out. */
int64_t redlock_requests_next_ns(const struct redlock_node *node);

/* Answers those that have timed out. */
void redlock_requests_expire(struct redlock_node *node, int64_t now_ns);

/* Answers all: the connection is gone. */
void redlock_requests_end(struct redlock_node *node);

#endif
