/* What is wrong with a history, and its figures. Pure. */
#ifndef CHAOS_CHECK_H
#define CHAOS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history.h"

/* X(constant, name, what it means) */
#define CHAOS_VIOLATION_MAP(X)                                                                                  \
    X(OVERLAP, "overlap", "two clients relied on leases of one resource at the same time")                        \
    X(OUTLIVED, "outlived", "a client relied on a lease that a quorum of nodes no longer had, or not for so long") \
    X(LOST_UPDATE, "lost update", "two clients wrote the successor of one count, or the sum is wrong")            \
    X(LATE, "late", "an operation did not complete by its deadline")                                            \
    X(CRASH, "crash", "a client process ended by itself")                                                       \
    X(LEFT, "left behind", "keys or processes were left after the end")                                         \
    X(INCOMPLETE, "incomplete", "the history has no end, or its parts contradict each other")

enum chaos_violation_kind {
#define CHAOS_X(constant, ...) CHAOS_VIOLATION_##constant,
    CHAOS_VIOLATION_MAP(CHAOS_X)
#undef CHAOS_X
        CHAOS_VIOLATION_KINDS
};

const char *chaos_violation_name(enum chaos_violation_kind kind);
const char *chaos_violation_meaning(enum chaos_violation_kind kind);

struct chaos_violation {
    enum chaos_violation_kind kind;
    int64_t from_us, to_us; /* the time that it is about */
    int resource;           /* -1 for none */
    int clients[2];         /* -1 for none */
    char *text;             /* owned: who, what, when, in seconds since the start */
};

/* After a time without a healthy quorum for some client: when it came back, and the first acquire after it. */
struct chaos_recovery {
    int64_t healed_us;
    int64_t acquired_us; /* completion of the first OK acquire after healed_us, by anyone; CHAOS_NEVER_US if none before the next fault or the end */
};

struct chaos_percentiles {
    size_t count;
    int64_t p50_us, p90_us, p99_us, max_us; /* 0 if count is 0 */
};

struct chaos_verdict {
    struct chaos_violation *violations; /* by from_us */
    size_t violation_count;
    size_t counts[CHAOS_VIOLATION_KINDS];
    int64_t lost_updates;
    int64_t operations; /* acquires and releases that completed */
    int64_t acquires, acquired, contended, no_quorum, too_slow, other; /* completed acquires by result */
    int64_t releases, released, release_lost, release_no_quorum;
    int64_t leases_lost; /* that ended without a release, in their owner's eyes */
    int64_t increments;
    /* Of acquires during all of which a quorum of nodes was healthy for the client, and the client ran: */
    int64_t healthy_acquires, healthy_acquired;
    int64_t longest_gap_us; /* between two successful acquires of anyone, as far as the quorum was healthy for all */
    struct chaos_recovery *recoveries;
    size_t recovery_count;
    struct chaos_percentiles acquire, acquire_first_try, release; /* of those that were OK; first_try: with one attempt */
};

/* healthy_acquired / healthy_acquires in 1/10000, rounded down; 10000 if there was none. */
int64_t chaos_availability_10000(const struct chaos_verdict *verdict);

/*
 * Slack is what this machine may add to a deadline (LATE), and the auditor's clock error is nothing: one machine. False without memory only.
 * Each check is a function of its own (check_overlap.c, …), and each can be run alone by the tests.
 */
bool chaos_check(const struct chaos_history *history, int64_t slack_us, struct chaos_verdict *verdict);
void chaos_verdict_clear(struct chaos_verdict *verdict);

/* The last line: "violations=V lost_updates=U operations=O availability=A", A with four decimals. Returns buffer. */
char *chaos_verdict_line(const struct chaos_verdict *verdict, char *buffer, size_t size);
/* The verdict in words, a few lines for a terminal: what was done, what was wrong, availability, recovery. To be freed; NULL without memory. */
char *chaos_verdict_words(const struct chaos_history *history, const struct chaos_verdict *verdict);

/*
 * Healthy quorums, for checks and report. Node n is unhealthy for client c from the begin to the end of a fault that hits n, or the link of c and n (whatever it
 * does: DELAY, JITTER and BANDWIDTH too), and a settle time after it (reconnection): 2 × node timeout + 2500 ms. Faults of the client itself (paused, killed)
 * count as unhealthy for it.
 * Fills spans[0..return) with the times when client c had no healthy quorum, by time and disjoint. To be freed; *count is set; NULL with *count
 * 0 for none; NULL with *count SIZE_MAX without memory.
 */
struct chaos_span {
    int64_t from_us, to_us;
};
struct chaos_span *chaos_unhealthy_spans(const struct chaos_history *history, int client, size_t *count);

#endif
