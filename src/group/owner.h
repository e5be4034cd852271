/* What asks nodes something: its place in the lists, in the schedule and in the counts of its group. */
#ifndef REDLOCK_GROUP_OWNER_H
#define REDLOCK_GROUP_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quorum.h"
#include "group/env.h"
#include "group/schedule.h"

struct redlock_group;
struct redlock_lease;
struct redlock_query;
struct redlock_guards;

/* Everything that sends messages begins with this: an answer's owner points to it. */
enum redlock_owner_kind {
    REDLOCK_OWNER_LEASE,
    REDLOCK_OWNER_OWED,
    REDLOCK_OWNER_INSPECT,
    REDLOCK_OWNER_CONNECT,
    REDLOCK_OWNER_GUARDS
};

struct redlock_owner {
    struct redlock_due due;
    uint8_t kind;
    redlock_nodes by_source; /* asked by source because they did not know the script: not a second time */
    uint32_t in_flight;      /* answers to come: memory stays until there are none */
    struct redlock_owner *previous, *next;
};

struct redlock_owner_list {
    struct redlock_owner *first, *last;
    uint32_t count;
};

/* A close is done. */
typedef void (*redlock_group_drained)(void *ctx);

/* The memory of a group that its owners share. */
struct redlock_group {
    struct redlock_env env;
    unsigned node_count, quorum; /* nobody else computes the quorum */
    redlock_nodes ready, first_try_done;
    const char *const *node_names;
    char *key_prefix;
    size_t key_prefix_size;
    int64_t node_timeout_ns;
    redlock_log_level log_level;
    struct redlock_guards *guards; /* NULL where no guard is on */
    bool watching_clocks;          /* the clock guard is */
    uint16_t fence_client;         /* low digits of our fencing tokens */
    int64_t fence_ahead_us;        /* by how much other clients' clocks are ahead, see redlock_fence_ahead_us() */
    struct redlock_fence_keys fence_keys;
    char *fence_suffix;
    struct redlock_schedule schedule;
    struct redlock_owner_list leases, owed, queries; /* queries: inspect and connect */
    struct redlock_owner *owed_next;                 /* to be asked next of the nodes that came back; NULL for none */
    redlock_nodes owed_back;                         /* these nodes */
    struct redlock_lease *callbacks_first, *callbacks_last;
    struct redlock_query *queries_done;
    uint64_t in_flight; /* answers to come, of all owners */
    int64_t armed_ns;   /* what wake_at() was last asked for */
    bool in_callbacks;  /* callbacks are running: calls they make are told in the next turn */
    bool closing;
    bool deleting;
    int64_t close_deadline_ns;
    redlock_group_drained drained;
    void *drained_ctx;
    redlock_statistics statistics;
};

int redlock_group_check_open(struct redlock_group *group); /* OK, ERR_CLOSED or ERR_FORKED */
int64_t redlock_group_now_ns(const struct redlock_group *group);
void redlock_group_own(struct redlock_owner_list *list, struct redlock_owner *owner, enum redlock_owner_kind kind);
/* Out of the list, but not of the schedule: to be owned again. */
void redlock_group_unlink(struct redlock_owner_list *list, struct redlock_owner *owner);
void redlock_group_disown(struct redlock_group *group, struct redlock_owner_list *list, struct redlock_owner *owner);
/* Sends and counts; returns the nodes that took the message. */
redlock_nodes redlock_group_send(struct redlock_group *group, struct redlock_owner *owner, redlock_nodes nodes,
                                 struct redlock_message *message);
/* Whether a node that does not know the script may be asked by source: once a request, or a node that always says so would be asked for ever. */
bool redlock_group_may_ask_by_source(const struct redlock_owner *owner, unsigned node);
bool redlock_group_has_callbacks(const struct redlock_group *group);
bool redlock_group_close_is_due(const struct redlock_group *group);
/* Asks for the next wake-up: at the end of every public call. */
void redlock_group_rearm(struct redlock_group *group);
/* OK, or ERR_INVALID: 1 byte or more, not longer than allowed with the prefix. */
int redlock_group_check_resource(const struct redlock_group *group, const char *resource, size_t *key_size);
void redlock_group_write_key(const struct redlock_group *group, const char *resource, size_t key_size, char *key);

static inline bool redlock_group_all_first_tries_done(const struct redlock_group *group) {
    return group->first_try_done == redlock_nodes_all(group->node_count);
}

/* How many nodes must grant a lock. */
static inline unsigned redlock_group_quorum(const struct redlock_group *group) {
    return group->quorum;
}

#endif
