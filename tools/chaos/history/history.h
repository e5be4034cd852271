/* What happened in a run, in memory. Read from JSON lines; see README.md for the events. */
#ifndef CHAOS_HISTORY_H
#define CHAOS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "faults/fault.h"
#include "faults/setup.h"

/* The last 16 characters of a token, terminated: those of one that waited begin with its ticket. */
enum { CHAOS_TOKEN_SIZE = 17 };

static inline const char *chaos_token_end(const char *token, size_t length) {
    return length < CHAOS_TOKEN_SIZE ? token : token + length - (CHAOS_TOKEN_SIZE - 1);
}

#define CHAOS_NEVER_US INT64_C(-1)

/* Clients, nodes and resources are indexes from 0 here, and numbers from 1 in the events and in all
 * words for people. */

enum chaos_what { CHAOS_ACQUIRE, CHAOS_RELEASE };

struct chaos_operation {
    int client;
    int resource;
    enum chaos_what what;
    bool shared; /* of an acquire: for reading, together with others */
    int64_t op;
    int64_t invoked_us;
    int64_t deadline_us;
    int64_t completed_us; /* or CHAOS_NEVER_US */
    char result[16];      /* "OK", "CONTENDED", …; "" while it has not completed */
    char votes[CHAOS_NODES_MAX + 1];
    int64_t attempts;
    /* of an acquire that was OK; "" if the end of its client cut it */
    char token[CHAOS_TOKEN_SIZE];
    int64_t fence;  /* its fencing token; 0 for none */
    int64_t ticket; /* it got the lock in a queue; 0: it did not */
    char *message;  /* owned; NULL for none */
};

struct chaos_claim {
    int64_t at_us;
    int64_t until_us;
};

struct chaos_lease {
    int client;
    int resource;
    bool shared;
    char token[CHAOS_TOKEN_SIZE];
    int64_t from_us;            /* of the first claim */
    int64_t until_us;           /* of the last claim, the latest */
    int64_t ended_us;           /* or CHAOS_NEVER_US: the client died with it, or the run ended */
    bool released;              /* it ended by a release */
    struct chaos_claim *claims; /* by time, each later than the one before */
    size_t claim_count;
};

struct chaos_increment {
    int client;
    int resource;
    char token[CHAOS_TOKEN_SIZE];
    int64_t read;
    int64_t intent_us;
    int64_t done_us;  /* or CHAOS_NEVER_US: killed in between */
    int64_t until_us; /* what was claimed when it wrote */
    bool refused;     /* the resource did not take the write */
    /* With fencing: what it told the resource, and the numbers that the resource gave to read and
     * write; 0 for none. */
    int64_t fence, read_number, write_number;
};

/* Under a shared lease. */
struct chaos_read {
    int client;
    int resource;
    char token[CHAOS_TOKEN_SIZE];
    int64_t count;
    int64_t at_us;         /* it had read by then */
    int64_t until_us;      /* what was claimed then */
    int64_t fence, number; /* with fencing: as of an increment */
};

/* The resource refused an access, for it had seen a higher token. */
struct chaos_refusal {
    int client;
    int resource;
    int64_t at_us;
    int64_t fence, highest;
    bool write; /* else a read */
};

/* What a client's process had counted by then: of redlock_statistics. */
struct chaos_tally {
    int client;
    int64_t pid, at_us;
    int64_t fenced_fast, fenced_slow, healed, quarantines, clock_jumps;
};

/* Of a lock that is read: one of those who have it together. */
struct chaos_reader {
    char token[CHAOS_TOKEN_SIZE];
    int64_t left_ms;
};

/* What the auditor saw of one resource on one node. */
struct chaos_sight {
    bool answered;
    char token[CHAOS_TOKEN_SIZE]; /* "" for no key, and where readers have it */
    int64_t pttl_ms;              /* -1: no ttl */
    struct chaos_reader *readers; /* owned; NULL for none */
    size_t reader_count;
    char (*line)[CHAOS_TOKEN_SIZE]; /* owned: who waits in the resource's queue; NULL for nobody */
    size_t line_count;
};

struct chaos_sweep {
    int64_t from_us;
    int64_t to_us;
    int resource;
    struct chaos_sight *nodes; /* node_count of them */
};

/* A fault that was on from from_us to to_us; by hand or by the schedule. */
struct chaos_band {
    int64_t id;
    struct chaos_fault fault; /* at_ms and for_ms are 0 here */
    int64_t from_us;
    /* When everything was undone; CHAOS_NEVER_US if it never was; from_us or a little later for
     * what does not last. */
    int64_t to_us;
    char *text;  /* owned */
    char *error; /* owned; NULL if it worked */
};

/* One process of a client; a client that was killed has several. */
struct chaos_life {
    int client;
    int64_t pid;
    int64_t spawned_us;
    int64_t ended_us; /* or CHAOS_NEVER_US */
    int64_t status;   /* -1 for a signal */
    int64_t signal;
    bool expected;
    struct chaos_setup setup;
};

struct chaos_history {
    char *version, *command, *backend, *experiment; /* owned; experiment may be "" */
    uint64_t seed;
    int64_t start_us, finish_us; /* finish_us: CHAOS_NEVER_US if the file has no `finish` */
    size_t node_count, client_count, resource_count;
    char **resources; /* owned names */
    int64_t ttl_ms, node_timeout_ms, wait_ms;
    int64_t readers; /* percent of the clients */
    bool breaks_assumptions;
    bool memoryless; /* nodes keep nothing over a restart */
    bool polls;      /* clients do not queue */
    bool tls;        /* between clients and nodes */
    struct chaos_protection protection;

    struct chaos_operation *operations; /* by invoked_us */
    size_t operation_count;
    struct chaos_lease *leases; /* by from_us */
    size_t lease_count;
    struct chaos_increment *increments; /* by intent_us */
    size_t increment_count;
    struct chaos_read *reads; /* by at_us */
    size_t read_count;
    struct chaos_sweep *sweeps; /* by from_us */
    size_t sweep_count;
    struct chaos_band *bands; /* by from_us */
    size_t band_count;
    struct chaos_life *lives; /* by spawned_us */
    size_t life_count;
    struct chaos_refusal *refusals; /* by at_us */
    size_t refusal_count;
    struct chaos_tally *tallies; /* by client, pid, at_us: the last of each process counts */
    size_t tally_count;
    int64_t *counters; /* resource_count at the end, NULL if not told */
    char **left;       /* what was left behind */
    size_t left_count;
    bool left_told;
};

/*
 * Reads JSON lines in any order. False with "history.jsonl:12: …" in error for a line that is no
 * JSON, for an event without a member that it needs or of a wrong type, for a number out of range,
 * without a `start`, and without memory. Unknown events and members are ignored. A last line
 * without its newline is one that a killed process did not finish: it is ignored.
 */
bool chaos_history_read(FILE *in, const char *name, struct chaos_history *history, struct chaos_error *error);
void chaos_history_clear(struct chaos_history *history);

/* Of clients that were told nothing else: n/2 + 1. */
static inline size_t chaos_quorum(const struct chaos_history *history) {
    return history->node_count / 2 + 1;
}

/* Whether clients were told something else. */
bool chaos_is_configured(const struct chaos_history *history);

#endif
