/* Which nodes may not vote on an acquire: nodes that restarted and may have forgotten locks, and
 * nodes whose clock jumped. */
#ifndef REDLOCK_CORE_GUARD_H
#define REDLOCK_CORE_GUARD_H

#include "core/clock.h"
#include "core/quorum.h"

#define REDLOCK_RUN_ID_SIZE 64

/*
 * A lease that needs a forgotten vote ends by ttl_max after the restart. So the lock stays
 * exclusive if the node grants nothing until then. Its quarantine lasts for ttl_max and its drift
 * on our own clock, from the moment when we saw the new run or the jump.
 *
 * event                                      quarantine
 * first greeting: OFF, OBSERVED              none
 * first greeting: STRICT                     yes, unless first_boot and within ttl_max of our start
 * greeting, another run_id (or none)         yes, unless OFF
 * the same run_id                            as it was
 * with the clock guard:
 * first greeting; a first reading after it   yes, until the clock is confirmed: it may have jumped
 * clock ahead of what it was                 yes; again from the latest jump
 * clock behind what it was                   as it was (keys live longer, which costs only waiting)
 *
 * A clock is confirmed when it is at most a second ahead of a quorum of nodes, itself included, all
 * read within three seconds. Fewer clocks than a quorum may be wrong in that time, so one clock of
 * that quorum is right. All unconfirmed clocks are compared again whenever another clock is read. A
 * clock that steps before it is confirmed is never confirmed: its quarantine runs to its end.
 *
 * Nothing that a node says about its data ends a quarantine. A setting (appendfsync always) says
 * nothing about a lost disk. Whatever lies on the disk also comes back with an old copy of it.
 *
 * A quarantine because of a run ends early, or does not begin, if the node has surely been up for
 * longer than ttl_max and its drift. Its uptime alone does not prove that: it is wall clock, and a
 * step moves it. We count the uptime less a second (it is cut to seconds), less the distance of the
 * node's clock from the quorum of clocks that are nearest to it, this one included, but never one
 * alone, all read within three seconds. They must be within a second. Here, too, one clock of that
 * quorum is right. We count no more than the time since we last saw the run before. The check runs
 * again with each node that greets. After a step of the clock, the uptime of the greeting does not
 * count. After a step forward that any reading shows (without the clock guard, the reading of a
 * greeting), no uptime of this run counts.
 *
 * What this cannot see:
 * - The clock of a server was behind when the server started, and was set right before we met it.
 *   Its uptime is too long. Only the last sight of the run before can show this.
 * - A clock is right when we first read it, but was stepped forward to be right within the last
 *   ttl_max: it had been behind, or it went ahead and back.
 * - Two steps cancel out between two readings, or a step is less than 1 % of the time between them.
 * - As many clocks as our quorum has nodes are wrong within three seconds, and agree.
 */
enum redlock_guard_reason {
    REDLOCK_GUARD_NONE,
    REDLOCK_GUARD_RESTARTED,        /* the run_id changed, or is missing */
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
    int64_t start_ns; /* when the guard started */
};

/* What a node says on a new connection, before we ask it for anything. */
struct redlock_greeting {
    const char *run_id;                /* "" if it did not say; too long counts as empty */
    int64_t uptime_s;                  /* below 1 if it did not say */
    struct redlock_clock_sample clock; /* server_us is 0 if it did not say */
};

struct redlock_guard_node {
    bool greeted;
    char run_id[REDLOCK_RUN_ID_SIZE];
    int64_t uptime_s, greeted_ns; /* the uptime at greeted_ns, or less; below 1: not known */
    bool uptime_stepped;          /* any uptime of this run may include a step forward */
    int64_t seen_ns;              /* when this run last answered */
    bool run_follows;             /* we saw the run before this one */
    int64_t run_after_ns;         /* when we last saw the run before */
    struct redlock_clock clock;   /* kept over restarts, with any guard */
    /* In quarantine until both have passed; 0: no quarantine. */
    int64_t run_until_ns, clock_until_ns;
    enum redlock_guard_reason run_reason, clock_reason;
    int64_t step_ns;
};

struct redlock_guard {
    struct redlock_guard_plan plan;
    redlock_nodes suspects; /* nodes that were ever in quarantine */
    redlock_nodes unjudged; /* nodes whose clock is not confirmed and has not stepped */
    redlock_nodes ahead;    /* nodes whose clock the last greeting or reading found to be ahead */
    struct redlock_guard_node nodes[REDLOCK_NODES_MAX];
};

void redlock_guard_init(struct redlock_guard *guard, const struct redlock_guard_plan *plan);

/* Whether any guard is on. */
static inline bool redlock_guard_is_on(const struct redlock_guard_plan *plan) {
    return plan->restart != REDLOCK_RESTART_GUARD_OFF || plan->clock;
}

/*
 * A new connection is ready. Returns the nodes whose quarantine began now and has not ended
 * already. This is usually `node` or none. With the clock guard it can also be nodes that are now
 * found to be ahead of the others (guard->ahead): what they granted is void. *jumped says that the
 * clock of `node` jumped forward: its earlier votes are void.
 */
redlock_nodes redlock_guard_greet(struct redlock_guard *guard, unsigned node, const struct redlock_greeting *greeting,
                                  int64_t now_ns, bool *jumped);

/*
 * Takes a reading of the node's clock; STEADY without the clock guard. FORWARD: the node's
 * quarantine starts now, and its earlier votes are void. step_ns as for redlock_clock_judge(). The
 * reading may also show that other nodes, whose clocks could not be compared before, are ahead:
 * guard->ahead.
 */
enum redlock_clock_verdict redlock_guard_sample(struct redlock_guard *guard, unsigned node,
                                                const struct redlock_clock_sample *sample, int64_t now_ns,
                                                int64_t *step_ns);

/* The node answered on the connection on which it greeted us. So the same run was still there. */
void redlock_guard_seen(struct redlock_guard *guard, unsigned node, int64_t at_ns);

/* The nodes that may not vote on an acquire now. */
redlock_nodes redlock_guard_may_not_vote(const struct redlock_guard *guard, int64_t now_ns);

/* Of these, the nodes whose clock was ahead: they may have ended a key too early. */
redlock_nodes redlock_guard_may_not_vote_by_clock(const struct redlock_guard *guard, int64_t now_ns);

/* When the quarantine ends (0: the node may vote) and its reason: the one that ends last. */
int64_t redlock_guard_until_ns(const struct redlock_guard *guard, unsigned node, int64_t now_ns);
enum redlock_guard_reason redlock_guard_why(const struct redlock_guard *guard, unsigned node, int64_t now_ns);

#endif
