/* The log messages about a lease. */
#ifndef REDLOCK_GROUP_JOURNAL_H
#define REDLOCK_GROUP_JOURNAL_H

#include "group/lease_memory.h"

/* "acquire"; "" for NONE. */
const char *redlock_journal_operation(enum redlock_operation operation);
/* An acquire may ask again and again, so the log leaves out a vote that is like the node's last
 * one. */
void redlock_journal_vote(struct redlock_lease *lease, unsigned node, const struct redlock_answer *answer);
/* A push of the node is a vote. */
void redlock_journal_push(const struct redlock_lease *lease, unsigned node);
/* Logs what a step of the core has changed. */
void redlock_journal_step(struct redlock_lease *lease, enum redlock_lease_state before,
                          const struct redlock_actions *actions, int64_t now_ns);

#endif
