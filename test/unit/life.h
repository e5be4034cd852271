/* The core of one lease, driven by hand: the test chooses each event and its time, and compares all
 * actions of a step. */
#ifndef LIFE_H
#define LIFE_H

#include "core/lease.h"
#include "core/time.h"
#include "test.h"

#define MS REDLOCK_NS_PER_MS
#define T0 (1000000 * MS) /* when a life begins; the helpers count ms from here */

/* A ttl of 10 s and its validity: the drift allowance is 102 ms. */
#define TTL_MS 10000
#define END_MS 9898

enum { G = REDLOCK_VOTE_GRANTED, D = REDLOCK_VOTE_DENIED, F = REDLOCK_VOTE_FAILED, U = REDLOCK_VOTE_UNKNOWN };

struct life {
    struct redlock_lease_core core;
    struct redlock_plan plan;
    struct redlock_actions did; /* by the last step */
    int64_t at_ms;              /* the time of the next event */
    int64_t wall_us;            /* its wall clock time */
    redlock_nodes may_not_vote; /* at the next event */
    bool in_line;               /* at the next event: others here wait already */
    bool misplaced;             /* at the next event: its ticket is wrong */
    bool may_leave_free;        /* at the next event: a release may leave the lock free */
    struct redlock_grants_view view;
    /* Use life_queue(): a copy of a life has a queue of its own. */
    _Alignas(struct redlock_grants) unsigned char queue[sizeof(struct redlock_grants) +
                                                        REDLOCK_NODES_MAX * sizeof(struct redlock_grants_node)];
};

/* An idle lease on n nodes. The plan is one attempt with TTL_MS, and retry delays of 50 to 200
 * ms. */
void life_init(struct life *life, unsigned n);
/* The same, and its acquire has begun. */
struct life *life_start(struct life *life, unsigned n);

/* After life_init(): it waits in queues for a minute; a node answers or fails within 50 ms. */
void life_may_queue(struct life *life);
struct redlock_grants *life_queue(struct life *life);
/* A lease on n nodes that takes its places without a first try. */
struct life *life_begin_in_line(struct life *life, unsigned n);
#define LIFE_VIEW(kind, id, pttl, before)                                                                              \
    (struct redlock_grants_view) {                                                                                     \
        .holder = REDLOCK_HOLDER_##kind, .holder_id = (id), .pttl_ms = (pttl), .rank = (before)                        \
    }

/* A test of one life, which begins so: LIFE_TEST(name, life_held(&life, false)). */
#define LIFE_TEST(test, begin)                                                                                         \
    static void test##_of(struct life life);                                                                           \
    TEST(test) {                                                                                                       \
        struct life life;                                                                                              \
        begin;                                                                                                         \
        test##_of(life);                                                                                               \
    }                                                                                                                  \
    static void test##_of(struct life life)

/* The time of the next event. This and each event return the life, for what comes next. */
struct life *life_at(struct life *life, int64_t at_ms);
/* One event each, at life->at_ms. */
struct life *life_park(struct life *life, int64_t until_ms);
struct life *life_begin(struct life *life);
struct life *life_adopt(struct life *life);
struct life *life_vote(struct life *life, unsigned node, int vote);
struct life *life_stale(struct life *life, unsigned node, int vote, uint32_t round);
struct life *life_refuse(struct life *life, redlock_nodes nodes);
/* A node's vote on ACQUIRE or FENCE of a lease with fencing: it accepts (counter 0), or answers
 * with its counter. */
struct life *life_fenced(struct life *life, unsigned node, int vote, uint64_t counter);
/* A node's vote on the current WAIT: queued, behind this holder. */
struct life *life_queued(struct life *life, unsigned node, struct redlock_grants_view view);
/* These nodes answer the current WAIT; all but the last must cause no action. */
struct life *life_answer_queued(struct life *life, redlock_nodes nodes, struct redlock_grants_view view);
struct life *life_push(struct life *life, unsigned node, uint32_t round);
struct life *life_listen(struct life *life);
struct life *life_left(struct life *life);
struct life *life_ready(struct life *life, unsigned node);
struct life *life_poll(struct life *life);
/* It stands at the gate of its slots, or does not any more. */
struct life *life_admit(struct life *life);
struct life *life_exclude(struct life *life);
struct life *life_void(struct life *life, redlock_nodes nodes);
struct life *life_timer(struct life *life);
struct life *life_cancel(struct life *life, int code);
struct life *life_extend(struct life *life, int64_t ttl_ms);
struct life *life_downgrade(struct life *life);
/* With the life's plan. */
struct life *life_settle(struct life *life);
struct life *life_release(struct life *life);

/* The votes of nodes 0, 1, 2, …: "GGD.U", where '.' is no vote. Each is an event; all but the last
 * must cause no action. */
struct life *life_votes(struct life *life, const char *votes);

/* When the next TIMER is due, in ms from T0 rounded down; -1 for never. */
int64_t life_next_ms(const struct life *life);
int64_t life_held_until_ms(const struct life *life); /* likewise; -1 for not held */
/* The next TIMER is due in this time, in ms; it is the next event. */
void life_expect_next(struct life *life, int64_t least_ms, int64_t most_ms);

/* Checks that the last step did exactly this, and that the lease is in this state. */
#define life_expect(life, state_, ...)                                                                                 \
    life_check(life, REDLOCK_LEASE_##state_, (struct redlock_actions){__VA_ARGS__}, __FILE__, __LINE__)
#define NOTHING .send = REDLOCK_OP_NONE
void life_check(const struct life *life, enum redlock_lease_state state, struct redlock_actions expected,
                const char *file, int line);

/* Shorthands for life_expect(). */
#define SENDS(op, nodes, number)   .send = REDLOCK_OP_##op, .send_nodes = (nodes), .round = (number)
#define WAITS(nodes, number, did_) SENDS(WAIT, nodes, number), .did = REDLOCK_GRANTS_##did_
#define ACQUIRED(code)             .acquired = true, .acquired_code = REDLOCK_##code
#define EXTENDED(code)             .extended = true, .extended_code = REDLOCK_##code
#define RELEASED(code)             .released = true, .released_code = REDLOCK_##code
#define LOST_BY_CLOCK              .lost = true, .lost_by_clock = true

/* A lease that all of five nodes have granted by T0 + 1 ms; auto_extend as given. */
void life_held(struct life *life, bool auto_extend);

#endif
