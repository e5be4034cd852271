/* The hostile monkey: makes any call of the asynchronous API at any moment, while nodes
 * misbehave. */
/*
 * Everything that chance decides follows from a seed; what the nodes make of it, and when, does
 * not. ledger.c knows what was asked and checks the results, acts.c asks, faults.c breaks things,
 * main.c begins and ends a run.
 *
 * Two moods. An HONEST run cuts, stalls, kills and restarts, but no node lies or forgets: at most
 * one token of a resource may be valid at any moment, and fencing tokens rise. A HOSTILE run
 * forges, loses and alters bytes and memory as well, which can make two holders. Whatever is
 * promised of requests, handles and memory holds in both.
 */
#ifndef TEST_MONKEY_H
#define TEST_MONKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ev.h>
#include <redlock/redlock.h>

#include "proxy.h"
#include "random.h"
#include "servers.h"

#define MONKEY_NODES_MAX 5
#define MONKEY_SLOTS     6 /* managers at once, those that are closing included */
/* Used again as late as possible, so that a second completion still finds it. */
#define MONKEY_CALLS     65536
#define MONKEY_HOLDINGS  16384
#define MONKEY_LIVE_MAX  256
#define MONKEY_RESOURCES 12
#define MONKEY_FORGOTTEN 16
#define MONKEY_KEPT      32

struct monkey;
struct holding;

enum slot_state {
    SLOT_FREE,
    SLOT_OPEN,
    SLOT_CLOSING, /* its close callback is awaited */
    SLOT_BLIND    /* closed without a callback: the manager may be gone at any moment */
};

struct slot {
    struct monkey *monkey;
    enum slot_state state;
    redlock_manager *manager;
    int64_t ttl_max_ms; /* with a guard; else the largest */
    unsigned pending;   /* requests that have not completed, of those with a callback */
    unsigned anonymous; /* requests without one, since the manager was made */
};

enum call_kind { CALL_ACQUIRE, CALL_EXTEND, CALL_RELEASE, CALL_INSPECT, CALL_CONNECT, CALL_KINDS };

enum call_state {
    CALL_UNUSED,
    CALL_MAKING, /* inside the function of the library */
    CALL_PENDING,
    CALL_DONE,
    CALL_REFUSED
};

struct call {
    struct slot *slot;
    enum call_kind kind;
    enum call_state state;
    uint64_t number;
    unsigned resource;
    bool cancelled, fencing;
    redlock_request *request;
    struct holding *holding; /* of an acquire, extend or release */
};

enum holding_state {
    HOLDING_UNUSED,
    HOLDING_ASKED, /* its acquire is pending */
    HOLDING_LIVE,  /* the handle may be used */
    HOLDING_ENDED
};

struct holding {
    struct slot *slot;
    enum holding_state state;
    redlock_lease *lease;
    unsigned resource;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    int64_t ttl_longest_ms; /* of all that was asked for it */
    bool listens;           /* it has an on_lost */
    bool renews;
    bool was_valid; /* so on_lost runs */
    bool lost;      /* reported: its validity stays 0 */
    bool saw_lost;
    bool extending;       /* an extend with a callback is pending */
    bool extending_blind; /* an extend without a callback was made, and may be pending */
    size_t live_index;
};

enum fault {
    FAULT_CUT, /* at a later byte, FIN or RST */
    FAULT_MUTE,
    FAULT_STALL, /* replies are held */
    FAULT_DAM,   /* requests are held */
    FAULT_TRICKLE,
    FAULT_DELAY,
    FAULT_REFUSE,
    FAULT_FREEZE,
    FAULT_SCRIPT_FLUSH,
    FAULT_CLIENT_KILL,
    FAULT_PAUSE,
    FAULT_RESTART,
    FAULT_ERRORS,
    FAULT_HONEST_KINDS,
    FAULT_INJECT = FAULT_HONEST_KINDS, /* from here on: lies */
    FAULT_SWALLOW,
    FAULT_CORRUPT,
    FAULT_CLOCK, /* a reading of a node's clock, or a counter, is off */
    FAULT_FLUSHALL,
    FAULT_KINDS
};

struct node {
    struct server *server;
    struct proxy *proxy;
    enum fault fault; /* that lasts, until ... */
    int64_t until_ms; /* 0: none */
};

struct forgotten {
    unsigned resource;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
};

#define MONKEY_URI_SIZE 64

struct monkey {
    uint64_t seed;
    bool hostile, tracing;
    bool quiet;     /* no new calls */
    bool calm;      /* and leases are released */
    bool failed;    /* a violation was found */
    bool inside;    /* a function of the library is running */
    unsigned depth; /* callbacks that are running */
    struct ev_loop *loop;
    struct sim_random acts, faults, options; /* a stream each */

    struct servers servers;
    struct node nodes[MONKEY_NODES_MAX];
    unsigned node_count;
    const redlock_tls_options *tls; /* NULL: none */
    char uris[MONKEY_NODES_MAX][MONKEY_URI_SIZE];
    char names[MONKEY_NODES_MAX][MONKEY_URI_SIZE]; /* the same, by a name that is looked up */
    struct proxy *twin;                            /* a second path to the first node */
    char twin_uri[MONKEY_URI_SIZE];
    int64_t next_fault_ms, fault_gap_ms;
    int64_t fence_expiry_ms; /* one setting for all clients */

    struct slot slots[MONKEY_SLOTS];
    struct call *calls;
    struct holding *holdings;
    size_t next_call, next_holding;
    struct holding *live[MONKEY_LIVE_MAX];
    size_t live_count;
    struct forgotten forgotten[MONKEY_FORGOTTEN]; /* tokens that nobody uses any more */
    size_t forgotten_count;
    redlock_result *kept[MONKEY_KEPT];
    uint64_t fence_highest[MONKEY_RESOURCES];

    uint64_t numbers; /* calls made */
    unsigned pending;
    uint64_t completed[CALL_KINDS], succeeded[CALL_KINDS], nested; /* inside a callback */
    uint64_t managers, closes_inside, losses, cancels, adopts, forgets, log_lines;
    uint64_t fault_count[FAULT_KINDS];
};

/* --- ledger.c --- */
/* Reports a broken promise with the seed, and ends the run. */
__attribute__((format(printf, 2, 3))) void monkey_complain(struct monkey *monkey, const char *format, ...);
__attribute__((format(printf, 2, 3))) void monkey_trace(const struct monkey *monkey, const char *format, ...);
const char *monkey_resource(unsigned index);

/* Before a request is made; NULL if too many are pending. */
struct call *call_begin(struct slot *slot, enum call_kind kind, unsigned resource);
/* What the function of the library returned. */
void call_made(struct call *call, int code);
/* The request has no callback. */
void call_is_blind(struct call *call);
/* The callback of requests; data is the call. */
void call_done(const redlock_result *result, void *data);

struct holding *holding_new(struct slot *slot, unsigned resource, int64_t ttl_ms);
void holding_begin(struct holding *holding, redlock_lease *lease);
void holding_end(struct holding *holding);
/* Reads its validity, and checks whether that may be. */
int64_t holding_look(struct holding *holding);
/* on_lost has yet to run: its validity has ended, or will end by itself. */
bool holding_will_be_lost(struct holding *holding);
/* The on_lost callback; data is the holding. */
void holding_lost(redlock_lease *lease, const char *reason, void *data);
/* In an honest run: no two valid tokens of one resource. */
void monkey_check_exclusion(struct monkey *monkey, unsigned resource);
void monkey_check_statistics(struct slot *slot);
void monkey_log(redlock_log_level level, const char *line, void *data);

/* --- acts.c --- */
/* Makes a random call, perhaps with this holding, which may be NULL. */
void monkey_act(struct monkey *monkey, struct holding *concerned);
void monkey_open(struct slot *slot);
/* Releases all leases, and cancels all requests that can be cancelled. */
void monkey_let_go(struct monkey *monkey);
void monkey_cancel_all(struct monkey *monkey);
void monkey_close(struct slot *slot, bool blind);

/* --- faults.c --- */
/* Ends faults that are over and, when it is time, starts one. */
void faults_step(struct monkey *monkey);
/* Ends all faults. Cuts the open connections, since one with changed bytes is out of step. */
void faults_end(struct monkey *monkey);
uint64_t fault_happened(const struct monkey *monkey, enum fault fault);
const char *fault_name(enum fault fault);

#endif
