/* What status finds at the nodes, and how it prints that. */
#ifndef TOOL_STATUS_H
#define TOOL_STATUS_H

#include <stdio.h>

#include "holders.h"
#include "locks.h"
#include "session.h"

/* One resource. */
struct tool_lock {
    const char *resource;
    struct tool_holders holders;
    int64_t waiters, waited_ms; /* -1: not known */
    redlock_result *result;     /* of its inspection; NULL with --all, or if there was no memory */
};

struct tool_findings {
    size_t nodes;
    size_t ready;
    size_t voters;   /* see tool_status_may_vote() */
    size_t refusing; /* ready nodes that take no writes now */
    size_t far;      /* ready nodes whose votes come too late */
    size_t quorum;
    size_t queueless; /* ready nodes that cannot keep a queue for us */
    struct tool_lock *locks;
    size_t lock_count;
    bool unanswered;         /* of some lock, or of all, fewer than a quorum could tell */
    bool late;               /* some node gave no answer within the node timeout */
    redlock_result *probe;   /* what each node says to a write now; NULL if nobody was asked */
    bool all;                /* with --all: */
    struct tool_keys keys;   /* they own the strings of the locks */
    redlock_result *listing; /* the vote of each node; NULL if there was no memory */
};

/* Asks the nodes. Returns 0, or an exit status after printing why. Free the findings anyway. */
int tool_status_find(struct tool_session *session, struct tool_findings *findings);
void tool_status_free(struct tool_findings *findings);

/* Why a ready node takes no writes now, and so no new locks, in its own words; "" if it takes them,
 * or if it is not known: the user may have no right to the probe's key. */
const char *tool_status_write_error(const struct tool_findings *findings, size_t node);
/* What to do about that. */
const char *tool_status_write_advice(const char *write_error);

/* A ready node whose vote comes in time, that no guard keeps from voting, and that takes writes. */
bool tool_status_may_vote(const struct tool_session *session, const struct tool_findings *findings, size_t node);

/* Whether the exit status says so: too few nodes may vote, or answered. */
bool tool_status_lacks_quorum(const struct tool_findings *findings);

/* Nothing is wrong with the connections, but too few nodes answered within the node timeout. */
bool tool_status_is_slow(const struct tool_findings *findings);

/* With --all: why the node did not list all of its locks, or what it left out; "" for nothing. */
const char *tool_status_list_error(const struct tool_findings *findings, size_t node);
/* With --all: whether the node listed all locks that the user may read. */
bool tool_status_has_listed(const struct tool_findings *findings, size_t node);

/* A ready node that cannot keep a queue, or has not subscribed yet. */
bool tool_status_keeps_no_queue(const redlock_node_info *info);
bool tool_status_is_undecided(const redlock_node_info *info);

/* -1: not known. No guard can judge a node that does not answer, but what it has judged stands. */
int64_t tool_status_quarantine_ms(const redlock_node_info *info);

/* For people, for programs, for Prometheus. */
void tool_status_print(FILE *out, const struct tool_session *session, const struct tool_findings *findings);
void tool_status_print_json(FILE *out, const struct tool_session *session, const struct tool_findings *findings);
void tool_status_print_metrics(FILE *out, const struct tool_session *session, const struct tool_findings *findings);

#endif
