/* What the checks share: the history with an index of processes, and the list of violations. For
 * check*.c, availability.c, figures.c, and their tests. */
#ifndef CHAOS_CHECK_PARTS_H
#define CHAOS_CHECK_PARTS_H

#include <string.h>

#include "checks/check.h"
#include "faults/lists.h"

struct chaos_case {
    const struct chaos_history *history;
    struct chaos_verdict *verdict;
    int64_t slack_us;
    int64_t end_us;                  /* of the history */
    const struct chaos_life **lives; /* by client, then by spawned_us */
    /* of each lease: it is relied on from from_us to this, which is not part of it */
    int64_t *relied_until_us;
};

/* The verdict is added to. */
void chaos_case_open(struct chaos_case *c, const struct chaos_history *history, int64_t slack_us,
                     struct chaos_verdict *verdict);
void chaos_case_close(struct chaos_case *c);
/* The client's process that was spawned last by then: it may have ended before. NULL for none. */
const struct chaos_life *chaos_case_life(const struct chaos_case *c, int client, int64_t at_us);
/* The nodes and the quorum of that process. */
struct chaos_setup chaos_case_setup(const struct chaos_case *c, int client, int64_t at_us);
/* About a time, a resource, and two clients; -1 for none of them. */
#define CHAOS_WRONG(kind, from_us, to_us, resource, client, other)                                                     \
    ((struct chaos_violation){CHAOS_VIOLATION_##kind, from_us, to_us, resource, {client, other}, NULL})
/* What was due by until_us and began at from_us, with the time for which the client was stopped
 * meanwhile. */
int64_t chaos_case_with_pauses(const struct chaos_case *c, int client, int64_t from_us, int64_t until_us);
/* Adds a violation; its text is made from the format, after the name of its resource, if it has
 * one. */
void chaos_case_add(struct chaos_case *c, struct chaos_violation violation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Each check, and the figures. */
void chaos_check_overlap(struct chaos_case *c);
void chaos_check_keys(struct chaos_case *c);
void chaos_check_late_work(struct chaos_case *c);
void chaos_check_updates(struct chaos_case *c);
void chaos_check_operations(struct chaos_case *c);
void chaos_check_fence(struct chaos_case *c);
void chaos_check_order(struct chaos_case *c);
void chaos_check_record(struct chaos_case *c);
void chaos_figures(struct chaos_case *c);
void chaos_availability(struct chaos_case *c);

/* For people: seconds since the start. */
static inline double chaos_seconds(const struct chaos_history *history, int64_t at_us) {
    return ((double)at_us - (double)history->start_us) / 1e6;
}

static inline double chaos_at(const struct chaos_case *c, int64_t at_us) {
    return chaos_seconds(c->history, at_us);
}

/* At what time it was over, or at what time to take it as over if it never was. */
static inline int64_t chaos_over(int64_t at_us, int64_t else_us) {
    return at_us == CHAOS_NEVER_US ? else_us : at_us;
}

static inline bool chaos_ended(const struct chaos_operation *operation, const char *result) {
    return strcmp(operation->result, result) == 0;
}

/* a + b, at most the largest number: what a history says need not be sensible. b is not
 * negative. */
static inline int64_t chaos_plus(int64_t a, int64_t b) {
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
