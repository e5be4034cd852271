/* The manager's memory, shared by the files that make it up: what receives answers, what is due, who must be told. */
#ifndef REDLOCK_GROUP_STATE_H
#define REDLOCK_GROUP_STATE_H

#include <stdatomic.h>

#include "core/debt.h"
#include "core/guard.h"
#include "core/lease.h"
#include "core/validity.h"
#include "group/group.h"
#include "group/schedule.h"

#define REDLOCK_TOKEN_DIGITS 32 /* of our own tokens: 128 random bits in hexadecimal (R10) */
#define REDLOCK_LEASES_MAX   (1u << 20)
#define REDLOCK_OWED_MAX     (1u << 16)
#define REDLOCK_ROUND_HEAL   0 /* answers of this round are no votes; rounds are counted from 1 */

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

/* One node's vote in the current round, as the result will tell it. */
struct redlock_detail {
    struct redlock_text *text;
    int32_t latency_us;
    uint8_t kind;
};

enum redlock_tell {
    REDLOCK_TELL_ACQUIRED = 1,
    REDLOCK_TELL_EXTENDED = 2,
    REDLOCK_TELL_LOST = 4,
    REDLOCK_TELL_RELEASED = 8
};

/* Owner and core come first: a vote touches little else. */
struct redlock_lease {
    struct redlock_owner owner;
    struct redlock_lease_core core;
    redlock_manager *manager;
    redlock_nodes owing;   /* nodes whose release is not confirmed */
    redlock_nodes unsure;  /* nodes that may set the key late, as of the start of this round: see unsure() */
    redlock_nodes healing; /* of these, nodes whose last request is a HEAL */
    uint16_t key_size;
    uint8_t token_size;
    uint8_t tell; /* enum redlock_tell: callbacks still to run */
    int8_t acquired_code, extended_code, released_code;
    bool queued_to_tell : 1;
    bool telling : 1;
    bool token_drawn : 1;  /* for the attempt that comes */
    bool handle_ended : 1; /* the caller may not use the lease any more */
    bool forgotten : 1;    /* answers and time change nothing any more */
    uint8_t loss : 3;      /* enum redlock_loss */
    bool counted_held : 1;
    bool extend_pending : 1;       /* a caller's extend has not been told */
    bool release_pending : 1;      /* a caller's release has not been told */
    _Atomic int64_t held_until_ns; /* the core's deadline, for any thread */
    struct redlock_lease *next_told;
    redlock_callback cb; /* of the acquire, later of the release */
    void *data;
    redlock_callback extend_cb;
    void *extend_data;
    int64_t extend_ttl_ms; /* that the caller asked for */
    redlock_lost_callback lost_cb;
    void *lost_data;
    uint64_t fence;          /* for any thread, from the acquire's callback on */
    int64_t ttl_sent_max_ms; /* a key of this lease lives at most so long after its release was asked */
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    struct redlock_detail details[]; /* node_count of them, then the key, terminated */
};

/* A release that is the library's duty (R8): after a lost attempt, a lost lease, or for nodes that did not confirm a
 * caller's release. */
struct redlock_owed {
    struct redlock_owner owner;
    struct redlock_debt debt;
    uint16_t key_size;
    uint8_t token_size;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    char key[];
};

struct redlock_manager {
    struct redlock_env env;
    void *root;
    unsigned node_count;
    redlock_nodes ready, settled;
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
    struct redlock_lease *told_first, *told_last;
    struct redlock_query *told_queries;
    uint64_t in_flight; /* answers to come, of all owners */
    int64_t armed_ns;   /* what wake_at() was last asked for */
    bool telling;       /* callbacks are running: calls they make are told in the next turn */
    bool closing;
    bool deleting;
    int64_t close_deadline_ns;
    redlock_manager_drained drained;
    void *drained_ctx;
    redlock_statistics statistics;
};

/* --- manager.c --- */
int redlock_manager_check_open(redlock_manager *manager); /* OK, ERR_CLOSED or ERR_FORKED */
int64_t redlock_manager_now_ns(const redlock_manager *manager);
void redlock_manager_own(struct redlock_owner_list *list, struct redlock_owner *owner, enum redlock_owner_kind kind);
/* Out of the list, but not of the schedule: to be owned again. */
void redlock_manager_unlink(struct redlock_owner_list *list, struct redlock_owner *owner);
void redlock_manager_disown(redlock_manager *manager, struct redlock_owner_list *list, struct redlock_owner *owner);
/* Sends and counts; returns the nodes that took the message. */
redlock_nodes redlock_manager_send(redlock_manager *manager, struct redlock_owner *owner, redlock_nodes nodes,
                                   struct redlock_message *message);
/* Whether a node that does not know the script may be asked by source: once a request, or a node that always says so would be asked for ever. */
bool redlock_manager_may_ask_by_source(const struct redlock_owner *owner, unsigned node);
/* Runs the callbacks that wait, then asks for the next wake-up. At the end of every way in from the env. */
void redlock_manager_settle(redlock_manager *manager);
/* Asks for the next wake-up: at the end of every public call. */
void redlock_manager_rearm(redlock_manager *manager);
/* OK, or ERR_INVALID: 1 byte or more, not longer than allowed with the prefix. */
int redlock_manager_check_resource(const redlock_manager *manager, const char *resource, size_t *key_size);
void redlock_manager_write_key(const redlock_manager *manager, const char *resource, size_t key_size, char *key);

static inline bool redlock_manager_all_settled(const redlock_manager *manager) {
    return manager->settled == redlock_nodes_all(manager->node_count);
}

/* --- lease.c --- */
/* Room for a lease of this resource, in the manager's list; NULL without memory. */
struct redlock_lease *redlock_lease_new(redlock_manager *manager, const char *resource, size_t key_size);
/* Steps the core and carries out what it says. */
void redlock_lease_feed(struct redlock_lease *lease, const struct redlock_event *event);
void redlock_lease_answer(struct redlock_lease *lease, uint32_t round, unsigned node,
                          const struct redlock_answer *answer);
void redlock_lease_due(struct redlock_lease *lease, int64_t now_ns);
/* Feeds the first event of an acquire. */
void redlock_lease_begin(struct redlock_lease *lease, const struct redlock_plan *plan, int64_t now_ns);
/* What the node granted up to now is void: why may be NULL without memory. */
void redlock_lease_void(struct redlock_lease *lease, unsigned node, struct redlock_text *why);
void redlock_lease_free_if_over(struct redlock_lease *lease);
/* The handle was forgotten: no answer and no time changes anything any more; freed once nothing is under way. */
void redlock_lease_retire(struct redlock_lease *lease);
void redlock_lease_free(struct redlock_lease *lease);

/* --- token.c --- */
int redlock_lease_draw_token(struct redlock_lease *lease, int64_t now_ns);

/* --- tell.c --- */
/* Runs what waits to be told of one lease, and frees it if that was the last. */
void redlock_lease_tell(struct redlock_lease *lease);
/* How it was lost: one sentence for the owner and the log. */
void redlock_lease_loss_text(const struct redlock_lease *lease, char *buffer, size_t size);

/* --- journal.c --- */
void redlock_journal_vote(const struct redlock_lease *lease, unsigned node);
/* What a step of the core has changed. */
void redlock_journal_step(const struct redlock_lease *lease, enum redlock_lease_state before,
                          const struct redlock_actions *actions, int64_t now_ns);

/* --- acquire.c --- */
/* The manager closes: a pending acquire is CLOSED, a lease is released and its handle ends. */
void redlock_lease_close(struct redlock_lease *lease);
/* The manager closes without the answers that a release still waits for: its caller is told CLOSED. */
void redlock_lease_abort(struct redlock_lease *lease);

/* --- owed.c --- */
/* Sends releases now and owns them until they are confirmed or over. Of `nodes`, those that are `uncertain` never answered a
 * request that sets the key: it may still land (R8). Without memory the keys live until their ttl (counted as dropped). */
void redlock_owed_add(redlock_manager *manager, const char *key, size_t key_size, const char *token, size_t token_size,
                      redlock_nodes nodes, redlock_nodes uncertain, int64_t ttl_ms);
void redlock_owed_answer(redlock_manager *manager, struct redlock_owed *owed, unsigned node,
                         const struct redlock_answer *answer);
void redlock_owed_due(redlock_manager *manager, struct redlock_owed *owed, int64_t now_ns);
/* Asks what the node owes, a part of it in each turn. */
void redlock_owed_node_ready(redlock_manager *manager, unsigned node);
/* The next part; while owed_next is not NULL. */
void redlock_owed_go_on(redlock_manager *manager);
void redlock_owed_free(redlock_manager *manager, struct redlock_owed *owed);

/* --- guards.c: all of it may be called without guards, and then does nothing --- */
/* False without memory. */
bool redlock_guards_open(redlock_manager *manager, const struct redlock_guard_plan *plan);
void redlock_guards_free(redlock_manager *manager);
/* Readings of the clocks end with a close. */
void redlock_guards_close(redlock_manager *manager);
redlock_nodes redlock_guards_barred(const redlock_manager *manager, int64_t now_ns);
/* Of these, the ones because of their clock; only with a guard. */
redlock_nodes redlock_guards_barred_by_clock(const redlock_manager *manager, int64_t now_ns);
/* Why a node may not vote now: a new reference, NULL where it may (or without memory). */
struct redlock_text *redlock_guards_text(redlock_manager *manager, unsigned node);
void redlock_guards_read_clock(redlock_manager *manager, unsigned node, const struct redlock_clock_sample *sample);
/* With guards only: the node's answer is a sign of life of its run. */
void redlock_guards_seen(redlock_manager *manager, unsigned node, const struct redlock_answer *answer);
void redlock_guards_answer(redlock_manager *manager, unsigned node, const struct redlock_answer *answer);
void redlock_guards_due(redlock_manager *manager, int64_t now_ns);
/* A node has settled: acquires that came too early for a guard begin once all have. */
void redlock_guards_settled(redlock_manager *manager);
/* The longest ttl that a guard allows, lock delay included; REDLOCK_TTL_MS_MAX without. */
int64_t redlock_guards_ttl_max_ms(const redlock_manager *manager);

/* --- query.c: inspect and connect --- */
struct redlock_query;
void redlock_query_answer(redlock_manager *manager, struct redlock_query *query, uint32_t round, unsigned node,
                          const struct redlock_answer *answer);
void redlock_query_due(redlock_manager *manager, struct redlock_query *query);
void redlock_query_close(redlock_manager *manager, struct redlock_query *query);
void redlock_query_node_settled(redlock_manager *manager);
void redlock_query_tell(redlock_manager *manager);
void redlock_query_free(redlock_manager *manager, struct redlock_query *query);

#endif
