/* The group as its env drives it: answers, wake-ups and node changes come in here. */
#ifndef REDLOCK_GROUP_GROUP_H
#define REDLOCK_GROUP_GROUP_H

#include "core/guard.h"
#include "group/owner.h"
#include "group/query.h"
#include "group/requests.h"

#define REDLOCK_FENCE_SUFFIX ":fence"

struct redlock_group_config {
    unsigned node_count;
    const char *key_prefix;        /* copied; NULL for none */
    const char *const *node_names; /* for results; outlive the group */
    int64_t node_timeout_ms;       /* how long close() waits for releases */
    redlock_log_level log_level;   /* spares formatting what nobody reads */
    redlock_restart_guard restart_guard;
    bool clock_guard, first_boot;
    int64_t ttl_max_ms;       /* with a guard */
    const char *fence_suffix; /* copied; NULL for the default */
    int64_t fence_expiry_ms;
};

/* The env is copied; its ctx outlives the group. NULL without memory. */
struct redlock_group *redlock_group_new(const struct redlock_env *env, const struct redlock_group_config *config);

/* Frees everything without a callback and without a message. No answer may come after this. */
void redlock_group_delete(struct redlock_group *group);

/* The answer of one node; `owner` and `round` are the message's. */
void redlock_group_answer(struct redlock_group *group, void *owner, uint32_t round, unsigned node,
                          const struct redlock_answer *answer);

/* The time asked with wake_at() has come, or may have. */
void redlock_group_wake(struct redlock_group *group);

/* A new connection is ready: what the node said of itself. With a guard, before redlock_group_ready_changed() tells of it; needless
 * without. */
void redlock_group_node_greeted(struct redlock_group *group, unsigned node, const struct redlock_greeting *greeting);

/* Whether a guard keeps the node from voting: for how long, and the sentence why ("" where it may), borrowed until the next call of anything here. */
int64_t redlock_group_node_quarantine_ms(const struct redlock_group *group, unsigned node, const char **why);

/* A node became ready (again): its debts are paid now. Or it is not any more, or has failed its first try: not ready. */
void redlock_group_ready_changed(struct redlock_group *group, unsigned node, bool ready);

/* Called once when a close is done, instead of the user's callback; the receiver tears down the env, deletes the
 * group, then calls the user's. */
void redlock_group_drain(struct redlock_group *group, redlock_group_drained drained, void *ctx);

/* As redlock_manager_statistics(). */
int redlock_group_statistics(const struct redlock_group *group, redlock_statistics *statistics);

#endif
