/* The memory of a group, which all its requesters share. A requester sends messages to nodes: it
 * has a place in the lists, the schedule and the counts of its group. */
#ifndef REDLOCK_GROUP_GROUP_H
#define REDLOCK_GROUP_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <redlock/telemetry.h>

#include "base/check.h"
#include "base/list.h"
#include "base/sanitize.h"
#include "core/quorum.h"
#include "group/env.h"
#include "group/line.h"
#include "group/schedule.h"

struct redlock_group;
struct redlock_lease;
struct redlock_guards;

/* Everything that sends messages begins with a redlock_requester. An answer points to it. */
enum redlock_requester_kind {
    REDLOCK_REQUESTER_LEASE,
    REDLOCK_REQUESTER_OWED,
    REDLOCK_REQUESTER_QUERY, /* inspect and connect */
    REDLOCK_REQUESTER_LISTING,
    REDLOCK_REQUESTER_OBSERVER,
    REDLOCK_REQUESTER_GUARDS, /* one at most */
    REDLOCK_REQUESTER_BUNDLE, /* sends nothing by itself; closes after its leases */
    REDLOCK_REQUESTER_TIMER,  /* in no list */
    REDLOCK_REQUESTER_KINDS
};

struct redlock_requester {
    struct redlock_list_entry entry; /* in the list of its kind */
    struct redlock_due due;
    /* Nodes that got the source of the script, because they did not know it; not a second time. */
    redlock_nodes by_source;
    uint8_t kind;
    uint16_t blocks;    /* of REDLOCK_SPARE_BLOCK bytes: its size */
    uint32_t in_flight; /* answers to come; the requester is not freed before they came */
};

/* A requester with one callback, which is no lease. */
struct redlock_oneshot {
    struct redlock_requester requester;
    struct redlock_list_entry done; /* in the list of those whose callbacks are to run */
};

#define REDLOCK_SPARE_BLOCK 16
/* A tool that finds uses of freed memory must see each lease freed. */
#define REDLOCK_SPARES_MAX (REDLOCK_UNDER_ASAN || REDLOCK_UNDER_TSAN ? 0 : 1024)

/* Memory of requesters that are gone, for new ones of the same size: the last one is still in the
 * cache. */
struct redlock_spares {
    struct redlock_spare {
        struct redlock_spare *next;
    } * first;
    size_t size;
    uint32_t count;
};

struct redlock_requester_list {
    struct redlock_list list;
    uint32_t count;
};

/* What a kind of requesters does; NULL: nothing. Each may free the requester. */
struct redlock_requester_ops {
    void (*answer)(struct redlock_group *group, struct redlock_requester *requester, unsigned node,
                   const struct redlock_answer *answer);
    void (*due)(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns);
    /* Of a one-shot request. */
    void (*callback)(struct redlock_group *group, struct redlock_requester *requester);
    void (*close)(struct redlock_group *group, struct redlock_requester *requester);
    /* The group is deleted. */
    void (*free)(struct redlock_group *group, struct redlock_requester *requester);
};

/* Of the kinds, each beside its code. The answers of a lease are most of the work, and called
 * directly. */
extern const struct redlock_requester_ops redlock_lease_ops, redlock_owed_ops, redlock_query_ops, redlock_listing_ops,
    redlock_observer_ops, redlock_guards_ops, redlock_bundle_ops, redlock_timer_ops;

/* The close is done. */
typedef void (*redlock_group_drained)(void *ctx);

/* The memory of a group. All its requesters share it. */
struct redlock_group {
    struct redlock_env env;
    unsigned node_count, quorum; /* nobody else computes the quorum */
    redlock_nodes ready, first_try_done;
    const char *const *node_names;
    char *key_prefix;
    size_t key_prefix_size;
    int64_t node_timeout_ns, connect_timeout_ns;
    redlock_log_level log_level;
    struct redlock_guards *guards; /* NULL without guards */
    bool watching_clocks;          /* the clock guard is on */
    uint16_t fence_client;         /* the low digits of our fencing tokens */
    /* How far other clients' clocks are ahead, see redlock_fence_ahead_us(). */
    int64_t fence_ahead_us;
    struct redlock_fence_keys fence_keys;
    char *fence_suffix;
    char *wait_suffix;
    /* Ends our tokens: the mark and the text; or nothing. */
    char holder[1 + REDLOCK_HOLDER_SIZE_MAX];
    uint8_t holder_size;
    struct redlock_line line;
    struct redlock_schedule schedule;
    struct redlock_spares spares;
    struct redlock_requester_list requesters[REDLOCK_REQUESTER_KINDS];
    struct redlock_channels channels; /* that observers hear */
    /* The next release to ask for, of nodes that came back; NULL for none. */
    struct redlock_requester *owed_next;
    redlock_nodes owed_back; /* the nodes that came back */
    uint32_t lingering;      /* leases that are known only for the sake of pushes */
    /* Leases whose callbacks are to run. No list: it would cost a lease 8 bytes. */
    struct redlock_lease *callbacks_first, *callbacks_last;
    uint64_t oneshots_waiting; /* so many: */
    struct redlock_list oneshots;
    uint64_t in_flight; /* answers to come, of all requesters */
    int64_t armed_ns;   /* what wake_at() was last asked for */
    /* Callbacks are running; results of calls that they make wait for the next turn. */
    bool in_callbacks;
    bool closing;
    bool deleting;
    int64_t close_deadline_ns;
    redlock_group_drained drained;
    void *drained_ctx;
    redlock_event_callback on_event; /* NULL: none */
    void *event_data;
    redlock_statistics statistics;
    /* What was wrong with the last argument that was refused; "" at first. */
    char invalid[REDLOCK_INVALID_SIZE];
    struct redlock_error_text failure; /* `invalid`: where checks write what is wrong */
    redlock_telemetry telemetry;       /* last: it is large */
};

int redlock_group_check_open(struct redlock_group *group); /* OK, ERR_CLOSED or ERR_FORKED */

static inline int64_t redlock_group_now_ns(const struct redlock_group *group) {
    return group->env.now_ns(group->env.ctx);
}

static inline bool redlock_group_has_callbacks(const struct redlock_group *group) {
    return (group->callbacks_first != NULL) | (group->oneshots_waiting != 0);
}

bool redlock_group_close_is_due(const struct redlock_group *group);
/* For redlock_group_rearm(). */
void redlock_group_wake_at(struct redlock_group *group, int64_t when_ns);
/* Asks for the next wake-up. Call it at the end of every public function. It runs at the end of
 * each vote, too, so the usual case has one branch. */
static inline void redlock_group_rearm(struct redlock_group *group) {
    const int64_t when_ns = redlock_schedule_first_ns(&group->schedule);
    if ((when_ns != group->armed_ns) | redlock_group_has_callbacks(group) | (group->owed_next != NULL) |
        (group->drained != NULL)) {
        redlock_group_wake_at(group, when_ns);
    }
}

/* For redlock_group_refuse(). */
int redlock_group_tell_refused(struct redlock_group *group) __attribute__((cold));

/* What a request for this resource is about, in `room`: see redlock_target_make(). */
static inline struct redlock_target *redlock_group_target(const struct redlock_group *group, const char *resource,
                                                          size_t key_size, void *room) {
    return redlock_target_make(room, group->key_prefix, group->key_prefix_size, resource,
                               key_size - group->key_prefix_size);
}

static inline bool redlock_group_all_first_tries_done(const struct redlock_group *group) {
    return group->first_try_done == redlock_nodes_all(group->node_count);
}

/* Tells the log of an argument that was refused: ERR_INVALID with a sentence in `group->invalid`.
 * Returns `code`. */
static inline int redlock_group_refuse(struct redlock_group *group, int code) {
    return code == REDLOCK_ERR_INVALID ? redlock_group_tell_refused(group) : code;
}

/* The same after all checks of a call: refused by them, or because the group is closed. */
static inline int redlock_group_admit(struct redlock_group *group, int code) {
    return code == REDLOCK_OK ? redlock_group_check_open(group) : redlock_group_refuse(group, code);
}

/* OK, or ERR_INVALID if the resource is empty, or too long with the prefix. `name` is that of the
 * argument. */
static inline int redlock_group_check_resource(struct redlock_group *group, const char *name, const char *resource,
                                               size_t *key_size) {
    struct redlock_error_text *failure = &group->failure;
    const size_t size = resource ? strlen(resource) : 0;
    *key_size = size + group->key_prefix_size;
    int code = redlock_check_given(failure, name, resource != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_size(failure, name, size, 1, REDLOCK_RESOURCE_SIZE_MAX - group->key_prefix_size,
                                  group->key_prefix_size > 0 ? " beside the key prefix" : "");
    }
    return code;
}

/* The oldest of this kind, and the next of its kind; NULL for none. */
static inline struct redlock_requester *redlock_requester_first(const struct redlock_group *group,
                                                                enum redlock_requester_kind kind) {
    struct redlock_list_entry *first = redlock_list_first(&group->requesters[kind].list);
    return first ? REDLOCK_CONTAINER(first, struct redlock_requester, entry) : NULL;
}

static inline struct redlock_requester *redlock_requester_next(const struct redlock_group *group,
                                                               const struct redlock_requester *requester) {
    struct redlock_list_entry *next = redlock_list_next(&group->requesters[requester->kind].list, &requester->entry);
    return next ? REDLOCK_CONTAINER(next, struct redlock_requester, entry) : NULL;
}

/* Each requester of this kind. The body may free `requester`, but no other. */
#define REDLOCK_REQUESTERS(requester, group, kind)                                                                     \
    for (struct redlock_requester *requester = redlock_requester_first(group, kind), *next_##requester;                \
         requester && (next_##requester = redlock_requester_next(group, requester), true);                             \
         requester = next_##requester)

/* Puts it at the end of the list of its kind. */
void redlock_requester_enlist(struct redlock_group *group, struct redlock_requester *requester,
                              enum redlock_requester_kind kind);

/* As malloc() and free(). */
static inline void *redlock_spares_take(struct redlock_spares *spares, size_t size) {
    struct redlock_spare *first = spares->first;
    if (spares->size != size || !first) {
        return malloc(size);
    }
    spares->first = first->next;
    spares->count--;
    return first;
}
void redlock_spares_give(struct redlock_spares *spares, void *memory, size_t size);
void redlock_spares_clear(struct redlock_spares *spares);

/* A new one there, with a place in the schedule: `size` bytes, of which the first `zeroed` are
 * zero. NULL if there is no memory. */
static inline void *redlock_requester_new(struct redlock_group *group, enum redlock_requester_kind kind, size_t size,
                                          size_t zeroed) {
    const size_t blocks = (size + REDLOCK_SPARE_BLOCK - 1) / REDLOCK_SPARE_BLOCK;
    struct redlock_requester *requester = redlock_spares_take(&group->spares, blocks * REDLOCK_SPARE_BLOCK);
    assert(blocks <= UINT16_MAX);
    if (!requester || !redlock_schedule_reserve(&group->schedule)) {
        free(requester);
        return NULL;
    }
    memset(requester, 0, zeroed);
    requester->blocks = (uint16_t)blocks;
    redlock_requester_enlist(group, requester, kind);
    return requester;
}

/* Takes it out of the list and out of the schedule. */
static inline void redlock_requester_delist(struct redlock_group *group, struct redlock_requester *requester) {
    redlock_list_remove(&requester->entry);
    group->requesters[requester->kind].count--;
    redlock_schedule_unreserve(&group->schedule, &requester->due);
}

/* Sends the message and counts it. Returns the nodes that took it. */
redlock_nodes redlock_requester_send(struct redlock_group *group, struct redlock_requester *requester,
                                     redlock_nodes nodes, struct redlock_message *message);
/* Whether to send the source of the script to a node that does not know it. Once for each request:
 * a node that never knows it would be asked for ever. */
static inline bool redlock_requester_may_ask_by_source(const struct redlock_requester *requester, unsigned node) {
    return (requester->by_source & REDLOCK_NODE(node)) == 0;
}
/* Its callback will run. */
void redlock_requester_queue_oneshot(struct redlock_group *group, struct redlock_oneshot *oneshot);

/* A timer in the schedule, for the layer above. Embed it. It sends nothing; it is a requester only
 * because the schedule knows these. */
struct redlock_timer {
    struct redlock_requester requester;
    void (*ring)(struct redlock_timer *timer); /* may close the timer */
};

/* False if there is no memory. After that, setting it cannot fail. */
bool redlock_timer_open(struct redlock_group *group, struct redlock_timer *timer,
                        void (*ring)(struct redlock_timer *timer));
void redlock_timer_close(struct redlock_group *group, struct redlock_timer *timer);
/* Rings once, in a later turn. REDLOCK_NEVER_NS: not. */
void redlock_timer_set(struct redlock_group *group, struct redlock_timer *timer, int64_t when_ns);

#endif
