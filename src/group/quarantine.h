/* Which nodes a guard keeps from voting, and why, in words. Without guards: none. */
#ifndef REDLOCK_GROUP_QUARANTINE_H
#define REDLOCK_GROUP_QUARANTINE_H

#include "core/guard.h"
#include "group/owner.h"

#define REDLOCK_CLOCK_READ_EVERY_MS INT64_C(1000) /* each node's clock, also while nothing is locked */
#define REDLOCK_QUARANTINE_WHY_SIZE 200

struct redlock_guards {
    struct redlock_owner owner; /* of the readings; in no list */
    struct redlock_guard guard;
    char why[REDLOCK_QUARANTINE_WHY_SIZE];
};

/* False without memory. */
bool redlock_guards_open(struct redlock_group *group, const struct redlock_guard_plan *plan);
void redlock_guards_free(struct redlock_group *group);
/* Readings of the clocks end with a close. */
void redlock_guards_close(struct redlock_group *group);

redlock_nodes redlock_quarantine_may_not_vote(const struct redlock_group *group, int64_t now_ns);
/* Of these, the ones because of their clock; only with a guard. */
redlock_nodes redlock_quarantine_may_not_vote_by_clock(const struct redlock_group *group, int64_t now_ns);
/* Why a node may not vote now: a new reference, NULL where it may (or without memory). */
struct redlock_text *redlock_quarantine_text(struct redlock_group *group, unsigned node);
/* The longest ttl that a guard allows, lock delay included; REDLOCK_TTL_MS_MAX without. */
int64_t redlock_quarantine_ttl_max_ms(const struct redlock_group *group);

/* With guards only, for guards.c: why each node may not vote, and what the log says of it. */
void redlock_quarantine_reasons(const struct redlock_group *group, int64_t now_ns, enum redlock_guard_reason *why);
void redlock_quarantine_log(struct redlock_group *group, unsigned node);
void redlock_quarantine_log_lifted(const struct redlock_group *group, int64_t now_ns,
                                   const enum redlock_guard_reason *before);
void redlock_quarantine_log_step(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample,
                                 int64_t step_ns);

#endif
