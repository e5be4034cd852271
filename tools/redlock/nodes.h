/* Warnings about nodes: what is wrong with their configuration, and why there is no quorum. */
#ifndef TOOL_NODES_H
#define TOOL_NODES_H

#include <stddef.h>
#include <stdint.h>

#include "session.h"

enum { TOOL_NODES_SUMMARY_SIZE = 2048 };

/* Whether the votes of a node that is ready come too late: a round trip to it takes longer than the
 * node timeout. */
bool tool_nodes_is_far(const struct tool_session *session, const redlock_node_info *info);

/* Why, and what to do. Returns buffer; the macro brings one that lives as long as the block. */
const char *tool_nodes_far_text(const struct tool_session *session, const redlock_node_info *info, char *buffer,
                                size_t size);
#define TOOL_NODES_FAR(session, info) tool_nodes_far_text(session, info, (char[160]){0}, 160)

/* The node timeout that would do for all nodes, in ms; 0 if no node is far. */
int64_t tool_nodes_timeout_needed_ms(const struct tool_session *session);

/* On an acquire: neither far nor in quarantine. */
bool tool_nodes_may_vote(const struct tool_session *session, const redlock_node_info *info);

/* Writes "1 of 3 nodes is ready (a:6379: WAITING, connection refused; …)". Returns how many may
 * vote. */
size_t tool_nodes_summary(const struct tool_session *session, char *buffer, size_t size);

/* How long it takes until a quorum of the ready nodes may vote on an acquire. 0 if they may now, or
 * if fewer than a quorum are ready. */
int64_t tool_nodes_quorum_in_ms(const struct tool_session *session);

/*
 * Warns once of each node that is unusable (a wrong password, a replica, the same server twice),
 * and once of each node with risky settings. Without a warning, nobody notices a lost minority
 * until the next node fails. Not of unusable ones after a failure whose sentence has just named
 * them.
 */
void tool_nodes_warn(struct tool_session *session, bool of_unusable);

#endif
