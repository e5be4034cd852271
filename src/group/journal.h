/* The log messages about a lease. */
#ifndef REDLOCK_GROUP_JOURNAL_H
#define REDLOCK_GROUP_JOURNAL_H

#include "group/lease_memory.h"

/* "acquire"; "" for NONE. */
const char *redlock_journal_operation(enum redlock_operation operation);
void redlock_journal_vote(const struct redlock_lease *lease, unsigned node);
/* A push of the node is a vote. */
void redlock_journal_push(const struct redlock_lease *lease, unsigned node);
/* Logs what a step of the core has changed. */
void redlock_journal_step(const struct redlock_lease *lease, enum redlock_lease_state before,
                          const struct redlock_actions *actions, int64_t now_ns);

#endif
