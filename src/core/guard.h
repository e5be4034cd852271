/* Which nodes may not vote on an acquire: after a restart in which they may have forgotten locks, or a jump of their clock. */
#ifndef REDLOCK_CORE_GUARD_H
#define REDLOCK_CORE_GUARD_H

#include "core/clock.h"
#include "core/quorum.h"

#define REDLOCK_RUN_ID_SIZE 64

/*
 * "Votes lost at time r support leases that end by r + ttl_max, so exclusion holds" if the node
 * grants nothing until then. It is in quarantine for ttl_max and its drift on our own clock, from
 * the moment when we saw the new run or the jump.
 *
 * event                                      quarantine
 * first greeting: OFF, OBSERVED              none
 * first greeting: STRICT                     yes, but not on a first boot: within ttl_max of the guard's own start
 * greeting, another run_id (or none told)    yes, unless OFF
 * the same run_id                            as it was
 * with the clock guard:
 * first greeting; a first reading after it   yes: nobody knows whether its clock has jumped. It ends
 *                                            when the clock is confirmed
 * clock ahead of what it was                 yes; again from the latest jump
 * clock behind what it was                   as it was (keys live longer: liveness only)
 *
 * A clock is confirmed once it is at most a second ahead of a quorum of nodes, itself among them,
 * all read within three seconds. Fewer clocks than a quorum may be wrong in that time, so one of
 * that quorum is right. All clocks that are not confirmed are compared again whenever another one
 * is read. A clock that steps before it is confirmed never is: its quarantine runs out.
 *
 * Nothing that a node says of its data lifts a quarantine. A setting (appendfsync always) tells
 * nothing about a disk that was lost, and whatever lies on the disk comes back with an old copy of
 * it.
 *
 * A quarantine because of a run is lifted, or does not begin, once the node has surely been up for
 * longer than ttl_max and its drift. Its uptime alone does not say so: it is wall clock, and a step
 * moves it. What counts is the uptime less a second, for it is cut to seconds, less how far the
 * node's clock may be from the median, which must be at most a second, as it must be of at least
 * quorum nodes (itself among them, but never alone), all read within three seconds; and no more
 * than the time since we last saw the run before. This is looked at again with each node that
 * greets. A step of the clock after the greeting ends this use of the uptime, and a step forward
 * that any reading shows (without the clock guard, that of a greeting) ends it for the whole run.
 *
 * What this cannot see:
 * - A server that was started while its clock was behind, and was set right before we met it, tells
 *   too long an uptime, which only a sight of the run before gives away.
 * - A clock that is right when we first read it and was stepped forward to be so within the last
 *   ttl_max: from behind, or ahead and back.
 * - Two steps that cancel out between two readings, and one that is less than 1 % of the time
 *   between them.
 */
enum redlock_guard_reason {
    REDLOCK_GUARD_NONE,
    REDLOCK_GUARD_RESTARTED,        /* another run_id than before, or none told */
    REDLOCK_GUARD_UNKNOWN,          /* met for the first time */
    REDLOCK_GUARD_CLOCK_STEP,       /* its clock jumped forward by step_ns */
    REDLOCK_GUARD_CLOCK_AHEAD,      /* its clock is ahead of the other nodes' by step_ns */
    REDLOCK_GUARD_CLOCK_UNCONFIRMED /* too few other clocks are known to compare it with */
};

struct redlock_guard_plan {
    redlock_restart_guard restart;
    bool clock, first_boot;
    int64_t ttl_max_ms;
    unsigned node_count, quorum;
    int64_t start_ns; /* when the guard begins */
};

/* What a node says on a new connection, before it is asked for anything. */
struct redlock_greeting {
    const char *run_id;                /* "" where it did not say; one that does not fit is taken for that */
    int64_t uptime_s;                  /* below 1 where it did not say */
    struct redlock_clock_sample clock; /* server_us 0 where it did not say */
};

struct redlock_guard_node {
    bool greeted;
    char run_id[REDLOCK_RUN_ID_SIZE];
    int64_t uptime_s, greeted_ns; /* the uptime as of then, or less; below 1: not known */
    bool uptime_stepped;          /* a step forward of the clock may be a part of any uptime that this run tells */
    int64_t seen_ns;              /* the last sign of life of this run */
    bool run_follows;             /* we saw the run before this one, */
    int64_t run_after_ns;         /* the last time then */
    struct redlock_clock clock;   /* kept over restarts, with any guard */
    int64_t run_until_ns, clock_until_ns; /* in quarantine until both are over; 0: none */
    enum redlock_guard_reason run_reason, clock_reason;
    int64_t step_ns;
};

struct redlock_guard {
    struct redlock_guard_plan plan;
    redlock_nodes suspects; /* nodes that ever were in quarantine */
    redlock_nodes unjudged; /* nodes whose clock was not confirmed yet, and has not stepped */
    redlock_nodes ahead;    /* nodes that the last greeting or reading found to be ahead of the others */
    struct redlock_guard_node nodes[REDLOCK_NODES_MAX];
};

void redlock_guard_init(struct redlock_guard *guard, const struct redlock_guard_plan *plan);

/* Whether any guard is on. */
static inline bool redlock_guard_is_on(const struct redlock_guard_plan *plan) {
    return plan->restart != REDLOCK_RESTART_GUARD_OFF || plan->clock;
}

/*
 * A new connection is ready. Returns the nodes whose quarantine began with this and is not lifted:
 * mostly `node` or none; with the clock guard also nodes that turn out to be ahead of the others
 * (guard->ahead): what they have granted is void. *jumped says that the clock of `node` had jumped
 * forward meanwhile: its earlier votes are void.
 */
redlock_nodes redlock_guard_greet(struct redlock_guard *guard, unsigned node, const struct redlock_greeting *greeting,
                                  int64_t now_ns, bool *jumped);

/*
 * A reading of the node's clock (with the clock guard; without, STEADY). FORWARD: it is in
 * quarantine from now on, and its earlier votes are void. step_ns as for redlock_clock_judge(). The
 * reading may show that nodes are ahead of the others which could not be compared before:
 * guard->ahead.
 */
enum redlock_clock_verdict redlock_guard_sample(struct redlock_guard *guard, unsigned node,
                                                const struct redlock_clock_sample *sample, int64_t now_ns,
                                                int64_t *step_ns);

/* The node answered something on the connection that it was greeted on: its run was there then, which no run after it was. */
void redlock_guard_seen(struct redlock_guard *guard, unsigned node, int64_t at_ns);

/* The nodes that may not vote on an acquire now. */
redlock_nodes redlock_guard_may_not_vote(const struct redlock_guard *guard, int64_t now_ns);

/* Of these, the nodes whose clock is known to have been ahead: a key may have ended too early
 * there. */
redlock_nodes redlock_guard_may_not_vote_by_clock(const struct redlock_guard *guard, int64_t now_ns);

/* Until when, 0 for a node that may vote; and why: what ends last. */
int64_t redlock_guard_until_ns(const struct redlock_guard *guard, unsigned node, int64_t now_ns);
enum redlock_guard_reason redlock_guard_why(const struct redlock_guard *guard, unsigned node, int64_t now_ns);

#endif
