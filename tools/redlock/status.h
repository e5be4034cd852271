/* What status finds at the nodes, and how it prints that. */
#ifndef TOOL_STATUS_H
#define TOOL_STATUS_H

#include <stdio.h>

#include "holders.h"
#include "locks.h"
#include "session.h"

/* A permit. */
struct tool_slot {
    struct tool_holders holders;
    redlock_result *result; /* of its inspection; NULL: nothing is known */
};

/* One resource. */
struct tool_lock {
    const char *resource;
    struct tool_holders holders;
    int64_t waiters, waited_ms; /* -1: not known */
    redlock_result *result;     /* of its inspection; NULL with --all, or if there was no memory */
    struct tool_slot *slots;    /* of its permits; NULL: it is a lock */
    size_t limit, taken;        /* how many there are; how many of them are held */
};

/* What there is to say of a node. "ready" is its state. */
struct tool_node {
    redlock_node_info info;
    bool ready;
    bool far;      /* ready, but its votes come too late */
    bool may_vote; /* ready, near enough, kept from voting by no guard, and takes writes */
    /* Why it is ready but takes no writes now, and so no new locks, in its own words; "" if it
     * takes them, or if it is not known: the user may have no right to the probe's key. */
    const char *write_error;
    bool queueless; /* ready, but cannot keep a queue for us */
    bool undecided; /* ready, but has not subscribed yet */
    /* -1: not known. No guard can judge a node that does not answer, but what it has judged
     * stands. */
    int64_t quarantine_ms;
    /* With --all: whether it listed all locks that the user may read; why it did not, or what it
     * left out, "" for nothing. */
    bool listed;
    const char *list_error;
};

struct tool_findings {
    struct tool_node at[REDLOCK_NODES_MAX];
    size_t nodes;
    size_t ready, voters, refusing, far, queueless; /* how many of them; refusing: writes */
    size_t quorum;
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

/* What to do about a node that takes no writes. */
const char *tool_status_write_advice(const char *write_error);

/* Whether the exit status says so: too few nodes may vote, or answered. */
bool tool_status_lacks_quorum(const struct tool_findings *findings);

/* Nothing is wrong with the connections, but too few nodes answered within the node timeout. */
bool tool_status_is_slow(const struct tool_findings *findings);

/* For people, for programs, for Prometheus. */
void tool_status_print(FILE *out, const struct tool_session *session, const struct tool_findings *findings);
void tool_status_print_json(FILE *out, const struct tool_session *session, const struct tool_findings *findings);
void tool_status_print_metrics(FILE *out, const struct tool_findings *findings);

#endif
