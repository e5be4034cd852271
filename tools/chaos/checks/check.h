/* What is wrong with a history, and its figures. Pure. */
#ifndef CHAOS_CHECK_H
#define CHAOS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "history/history.h"

/* X(constant, name, what it means) */
#define CHAOS_VIOLATION_MAP(X)                                                                                         \
    X(OVERLAP, "overlap", "two clients relied on leases of one resource at the same time, not both to read")           \
    X(OUTLIVED, "outlived", "a client relied on a lease that a quorum of nodes no longer had, or not for so long")     \
    X(PAST, "past its lease", "a client worked on beyond the end of its own lease")                                    \
    X(LOST_UPDATE, "lost update", "two clients wrote the successor of one count, or the sum is wrong")                 \
    X(CHANGED, "changed", "a count changed while a client read it under its lease")                                    \
    X(STALE, "stale access", "the guarded resource granted an access with a lower fencing token than one before")      \
    X(FENCE, "fencing token", "two leases had the same fencing token, or a later lease a lower one")                   \
    X(ORDER, "order", "the lock was handed to a waiter while one with a lower ticket was in line")                     \
    X(LATE, "late", "an operation did not complete by its deadline")                                                   \
    X(CRASH, "crash", "a client process ended by itself")                                                              \
    X(LEFT, "left behind", "keys or processes were left after the end")                                                \
    X(INCOMPLETE, "incomplete", "the history has no end, or its parts contradict each other")

enum chaos_violation_kind {
#define CHAOS_X(constant, ...) CHAOS_VIOLATION_##constant,
    CHAOS_VIOLATION_MAP(CHAOS_X)
#undef CHAOS_X
        CHAOS_VIOLATION_KINDS
};

extern const struct chaos_violation_about { const char *name, *meaning; } chaos_violation_abouts[CHAOS_VIOLATION_KINDS];

struct chaos_violation {
    enum chaos_violation_kind kind;
    int64_t from_us, to_us; /* the time that it is about */
    int resource;           /* -1 for none */
    int clients[2];         /* -1 for none */
    char *text;             /* owned: who, what, when, in seconds since the start */
};

/*
 * Recovery. An outage is a time when no client had a quorum of nodes whose votes could come: of
 * each client, as many nodes or links were silenced at once (killed, paused, busy, asleep for a
 * node timeout or longer, out of memory, password changed, cut off one way or both, delayed by half
 * a node timeout or more each way), or it was paused or dead itself. No settle time is added: it
 * ends with the heal itself.
 */
struct chaos_recovery {
    int64_t healed_us; /* an outage ended */
    /* Completion of the first acquire after that that was OK, by anyone, whenever invoked;
     * CHAOS_NEVER_US if the next outage or the end came first. */
    int64_t acquired_us;
};

/* Nearest rank: p90 is the smallest that nine tenths are not above. */
struct chaos_percentiles {
    size_t count;
    int64_t p50_us, p90_us, p99_us, max_us; /* 0 if count is 0 */
};

struct chaos_verdict {
    struct chaos_violation *violations; /* by from_us */
    size_t violation_count;
    size_t counts[CHAOS_VIOLATION_KINDS];
    int64_t lost_updates;
    /* acquires and releases that completed */
    int64_t operations;
    /* completed acquires by result */
    int64_t acquires, acquired, contended, no_quorum, too_slow, other;
    /* completed releases by result */
    int64_t releases, released, release_lost, release_no_quorum;
    int64_t leases_lost; /* that ended without a release, in their owner's eyes */
    int64_t increments;  /* that were done */
    int64_t reads;       /* of the counters, under shared leases */
    /* Acquires that got the lock before one that had begun a node timeout earlier, or more;
     * acquires of which check_order.c could tell whether they broke the order. */
    int64_t passed_over, order_judged;
    /* by the resource, for it had seen a higher fencing token */
    int64_t reads_refused, writes_refused;
    /* What the library counted in all processes of clients, as far as they told: the last second of
     * one that was killed is missing. */
    int64_t fenced_fast, fenced_slow, healed, quarantines, clock_jumps;
    /*
     * Availability is the share of the second in the first: completed acquires during all of which,
     * from invocation to completion, a quorum of nodes was healthy for the client
     * (chaos_unhealthy_spans()), and of these the ones that got the lock. Acquires that the end of
     * the client cut (CLOSED, CANCELLED) are left out. To wait for others and not get the lock is
     * no success.
     */
    int64_t healthy_acquires, healthy_acquired;
    /*
     * The longest time in which no acquire of anyone succeeded, within a time when a quorum was
     * healthy for all clients and none was paused or dead, and between the first invocation and the
     * last completion of an acquire.
     */
    int64_t longest_gap_us;
    /* likewise whatever the faults: the longest time between two acquires of anyone that
     * succeeded */
    int64_t longest_without_us;
    struct chaos_recovery *recoveries;
    size_t recovery_count;
    /* of those after which somebody acquired: how many, and how long that took */
    size_t recovered;
    int64_t recovered_least_us, recovered_most_us;
    /* of those that were OK; first_try: with one attempt; in_line: in a queue; to read: with a
     * shared lease */
    struct chaos_percentiles acquire, acquire_first_try, acquire_in_line, acquire_to_read, acquire_to_write, release;
};

/* healthy_acquired / healthy_acquires in 1/10000, rounded down; 10000 if there was none. */
int64_t chaos_availability_10000(const struct chaos_verdict *verdict);

/*
 * Slack is what this machine may add to a deadline (LATE), and the auditor's clock error is
 * nothing: one machine. What each check looks for stands above it, and what of it is proven in
 * tools/chaos/README.md: check_time.c (OVERLAP, PAST, LATE), check_keys.c, check_updates.c
 * (LOST_UPDATE, CHANGED), check_fence.c (STALE, FENCE), check_order.c (ORDER), check_record.c
 * (CRASH, LEFT, INCOMPLETE).
 * Each can be run alone (check_parts.h).
 */
void chaos_check(const struct chaos_history *history, int64_t slack_us, struct chaos_verdict *verdict);
/* Whether a guard that is on is for this fault. */
bool chaos_is_guarded(const struct chaos_history *history, const struct chaos_fault *fault);
/* Whether a guard kept the node from voting at some moment between the two times. */
bool chaos_kept_out(const struct chaos_history *history, size_t node, int64_t from_us, int64_t to_us);
/* The latest time that the history tells. */
int64_t chaos_history_end_us(const struct chaos_history *history);
/*
 * Whether something happened that breaks what Redlock assumes, by the schedule or by hand; and if
 * so, whether a guard was on for each such fault.
 */
bool chaos_breaks_assumptions(const struct chaos_history *history);
bool chaos_all_guarded(const struct chaos_history *history);
/* Violations that no fault of the nodes' memory or clocks explains; with fencing tokens a lost
 * update and a changed count are among these. */
size_t chaos_hard_count(const struct chaos_history *history, const struct chaos_verdict *verdict);
void chaos_verdict_clear(struct chaos_verdict *verdict);

/* The last line: "violations=V lost_updates=U operations=O availability=A", A with four decimals,
 * or "none" where no acquire had a healthy quorum. Returns buffer. */
char *chaos_verdict_line(const struct chaos_verdict *verdict, char *buffer, size_t size);
/* The verdict in words, a few lines for a terminal: what was done, what was wrong, availability,
 * recovery. */
void chaos_verdict_say(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict);

/*
 * Healthy quorums, for checks and report. Node n is unhealthy for client c from the begin to the
 * end of a fault that hits n, or the link of c and n (whatever it does: DELAY, JITTER and BANDWIDTH
 * too), and a settle time after it (reconnection): 2 × node timeout + 2500 ms. SLOW and BUSY last
 * for their amount. Faults of the client itself (paused, killed) count as unhealthy for it, without
 * a settle time. A fault that was never undone lasts until the end. The times when client c had no
 * healthy quorum, by time, disjoint, none after the history's end. To be freed; NULL with *count 0
 * for none.
 */
struct chaos_span {
    int64_t from_us, to_us;
};
struct chaos_span *chaos_unhealthy_spans(const struct chaos_history *history, int client, size_t *count);

#endif
