/* Which nodes may not vote on an acquire: after a restart in which they may have forgotten locks, or a jump of their clock. */
#ifndef REDLOCK_CORE_GUARD_H
#define REDLOCK_CORE_GUARD_H

#include "core/clock.h"
#include "core/quorum.h"

#define REDLOCK_RUN_ID_SIZE 64

/*
 * "Votes lost at time r support leases that end by r + ttl_max, so exclusion holds" if the node grants nothing until then. It is
 * in quarantine for ttl_max and its drift on our own clock, from the moment when we saw the new run or the jump.
 *
 * event                                      quarantine
 * first greeting: OFF, OBSERVED, first boot  none
 * first greeting: STRICT                     yes
 * greeting, another run_id (or none told)    yes, unless OFF
 * the same run_id                            as it was
 * clock ahead of what it was                 yes, with the clock guard; again from the latest jump
 * clock behind what it was                   as it was (keys live longer: liveness only)
 * its first reading ahead of the median by   yes, with the clock guard; each node is compared once, when at least
 * more than a second                         quorum clocks are known, its own among them
 *
 * Because of a run (not of a clock):
 * - A quarantine does not begin (one that there is stays) if the node said appendonly yes and appendfsync always at this
 *   greeting and, where there was one, at the last before.
 * - Each quarantine is lifted, or does not begin, once the node has surely been up for longer than ttl_max and its drift. Its
 *   uptime alone does not say so: it is wall clock, and a step moves it. What counts is the uptime less a second, for it is
 *   cut to seconds, less how far the node's clock may be from the median, which must be at most a second, as it must be of
 *   at least quorum nodes (itself among them, but never alone); and no more than the time since we last saw the run before.
 *   This is looked at again with each node that greets. A step of the clock after the greeting ends this use of the uptime,
 *   and a step forward that any reading shows (without the clock guard, that of a greeting) ends it for the whole run.
 *
 * What this cannot see:
 * - A server that was started while its clock was behind, and was set right before we met it, tells too long an uptime, which
 *   only a sight of the run before gives away.
 * - A server that was given its appendonly by a restart before we met it, or between two runs that we saw.
 * - Two steps that cancel out between two readings, and one that is less than 1 % of the time between them.
 */
enum redlock_guard_reason {
    REDLOCK_GUARD_NONE,
    REDLOCK_GUARD_RESTARTED,  /* another run_id than before, or none told */
    REDLOCK_GUARD_UNKNOWN,    /* met for the first time */
    REDLOCK_GUARD_CLOCK_STEP, /* its clock jumped forward by step_ns */
    REDLOCK_GUARD_CLOCK_AHEAD /* its clock is ahead of the other nodes' by step_ns */
};

struct redlock_guard_plan {
    redlock_restart_guard restart;
    bool clock, first_boot;
    int64_t ttl_max_ms;
    unsigned node_count;
};

/* What a node says on a new connection, before it is asked for anything. */
struct redlock_greeting {
    const char *run_id;                /* "" where it did not say; one that does not fit is taken for that */
    int64_t uptime_s;                  /* below 1 where it did not say */
    bool always_synced;                /* appendonly yes and appendfsync always */
    struct redlock_clock_sample clock; /* server_us 0 where it did not say */
};

struct redlock_guard_node {
    bool greeted;
    bool always_synced;
    char run_id[REDLOCK_RUN_ID_SIZE];
    int64_t uptime_s, greeted_ns; /* the uptime as of then, or less; below 1: not known */
    bool uptime_stepped;          /* a step forward of the clock may be a part of any uptime that this run tells */
    int64_t seen_ns;              /* the last sign of life of this run */
    bool run_follows;             /* we saw the run before this one, */
    int64_t run_after_ns;         /* the last time then */
    struct redlock_clock clock;   /* kept over restarts, with any guard */
    int64_t first_offset_ns;      /* as its clock was when it was first read */
    bool clock_compared;          /* that, with the median */
    int64_t run_until_ns, clock_until_ns; /* in quarantine until both are over; 0: none */
    enum redlock_guard_reason run_reason, clock_reason;
    int64_t step_ns;
};

struct redlock_guard {
    struct redlock_guard_plan plan;
    redlock_nodes suspects; /* nodes that ever were in quarantine */
    redlock_nodes ahead;    /* nodes that the last greeting or reading found to be ahead of the median */
    struct redlock_guard_node nodes[REDLOCK_NODES_MAX];
};

void redlock_guard_init(struct redlock_guard *guard, const struct redlock_guard_plan *plan);

/* Whether any guard is on. */
static inline bool redlock_guard_is_on(const struct redlock_guard_plan *plan) {
    return plan->restart != REDLOCK_RESTART_GUARD_OFF || plan->clock;
}

/*
 * A new connection is ready. Returns the nodes whose quarantine began with this and is not lifted: mostly `node` or none, but
 * once clocks of a quorum are known, also nodes that turn out to be ahead of the median: their votes on an acquire that is
 * under way are void. *jumped says that the clock of `node` had jumped forward meanwhile: its earlier votes are void.
 */
redlock_nodes redlock_guard_greet(struct redlock_guard *guard, unsigned node, const struct redlock_greeting *greeting,
                                  int64_t now_ns, bool *jumped);

/*
 * A reading of the node's clock (with the clock guard; without, STEADY). FORWARD: it is in quarantine from now on, and its
 * earlier votes are void; also if this is its first reading, and ahead of the median. step_ns as for redlock_clock_judge().
 * It may show that others are, too, whose clocks could not be compared before: guard->ahead.
 */
enum redlock_clock_verdict redlock_guard_sample(struct redlock_guard *guard, unsigned node,
                                                const struct redlock_clock_sample *sample, int64_t now_ns,
                                                int64_t *step_ns);

/* The node answered something on the connection that it was greeted on: its run was there then, which no run after it was. */
void redlock_guard_seen(struct redlock_guard *guard, unsigned node, int64_t at_ns);

/* The nodes that may not vote on an acquire now. */
redlock_nodes redlock_guard_barred(const struct redlock_guard *guard, int64_t now_ns);

/* Until when, 0 for a node that may vote; and why: what ends last. */
int64_t redlock_guard_until_ns(const struct redlock_guard *guard, unsigned node, int64_t now_ns);
enum redlock_guard_reason redlock_guard_why(const struct redlock_guard *guard, unsigned node, int64_t now_ns);

#endif
