/* The manager as its env drives it: answers, wake-ups and node changes come in here. */
#ifndef REDLOCK_GROUP_GROUP_H
#define REDLOCK_GROUP_GROUP_H

#include "core/guard.h"
#include "group/env.h"

#define REDLOCK_FENCE_SUFFIX ":fence"

struct redlock_manager_config {
    unsigned node_count;
    const char *key_prefix;        /* copied; NULL for none */
    const char *const *node_names; /* for results; outlive the manager */
    int64_t node_timeout_ms;       /* how long close() waits for releases */
    redlock_log_level log_level;   /* spares formatting what nobody reads */
    redlock_restart_guard restart_guard;
    bool clock_guard, first_boot;
    int64_t ttl_max_ms;       /* with a guard */
    const char *fence_suffix; /* copied; NULL for the default */
    int64_t fence_expiry_ms;
};

/* The env is copied; its ctx outlives the manager. NULL without memory. */
redlock_manager *redlock_manager_new(const struct redlock_env *env, const struct redlock_manager_config *config);

/* Frees everything without a callback and without a message. No answer may come after this. */
void redlock_manager_delete(redlock_manager *manager);

/* The answer of one node; `owner` and `round` are the message's. */
void redlock_manager_answer(redlock_manager *manager, void *owner, uint32_t round, unsigned node,
                            const struct redlock_answer *answer);

/* The time asked with wake_at() has come, or may have. */
void redlock_manager_wake(redlock_manager *manager);

/* A new connection is ready: what the node said of itself. With a guard, before redlock_manager_node_settled() tells of it; needless
 * without. */
void redlock_manager_node_greeted(redlock_manager *manager, unsigned node, const struct redlock_greeting *greeting);

/* Whether a guard keeps the node from voting: for how long, and the sentence why ("" where it may), borrowed until the next call of anything here. */
int64_t redlock_manager_node_quarantine_ms(const redlock_manager *manager, unsigned node, const char **why);

/* A node became ready (again): its debts are paid now. Or it is not any more, or has failed its first try: not ready. */
void redlock_manager_node_settled(redlock_manager *manager, unsigned node, bool ready);

/* Called once when a close is done, instead of the user's callback; the receiver tears down the env, deletes the
 * manager, then calls the user's. */
typedef void (*redlock_manager_drained)(redlock_manager *manager, void *ctx);
void redlock_manager_drain(redlock_manager *manager, redlock_manager_drained drained, void *ctx);

/* What the composition root hangs on the manager, for redlock_manager_close() and the node queries. */
void *redlock_manager_root(const redlock_manager *manager);
void redlock_manager_set_root(redlock_manager *manager, void *root);

#endif
