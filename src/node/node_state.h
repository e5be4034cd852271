/* The inside of a node, shared by node.c, connect.c and traffic.c. */
#ifndef REDLOCK_NODE_NODE_STATE_H
#define REDLOCK_NODE_NODE_STATE_H

#include "node/handshake.h"
#include "node/inflight.h"
#include "node/node.h"
#include "node/outbox.h"
#include "node/resolve.h"
#include "wire/reply.h"

/* The states of architecture.md; the first four are CONNECTING. */
enum redlock_node_phase {
    REDLOCK_PHASE_NEW,       /* the first turn of the loop is still to come */
    REDLOCK_PHASE_RESOLVING, /* lookup is under way */
    REDLOCK_PHASE_OPENING,   /* endpoints[endpoint] is being connected to */
    REDLOCK_PHASE_GREETING,  /* handshake */
    REDLOCK_PHASE_READY,
    REDLOCK_PHASE_STALLED,
    REDLOCK_PHASE_WAITING, /* until retry_ns */
    REDLOCK_PHASE_UNUSABLE /* until retry_ns */
};

struct redlock_node {
    struct redlock_watch watch; /* first: a watch is its node */
    struct redlock_reactor reactor;
    struct redlock_node_listener listener;
    struct redlock_node_options options;
    struct redlock_address address;
    unsigned index;
    uint32_t jitter;

    enum redlock_node_phase phase;
    bool first_try_done; /* the first try is over: ready_changed was called */
    int fd;              /* -1 for none */
    bool blocked;        /* the socket is full: writes wait until it is writable */

    int64_t timer_ns;     /* the reactor's, which may be earlier than what is due (R7) */
    int64_t give_up_ns;   /* CONNECTING: the end of this try */
    int64_t endpoint_ns;  /* OPENING: the end of this endpoint's share of it */
    int64_t retry_ns;     /* WAITING, UNUSABLE */
    int64_t stall_end_ns; /* STALLED: the connection is given up then */
    int64_t hello_ns;     /* the last part of the handshake was queued */
    int64_t up_ns;        /* READY since */
    int64_t scripts_ns;   /* scripts were sent last */
    unsigned failures;    /* tries in a row, for the backoff (R16) */
    unsigned timeouts;    /* in a row, without any reply (R17) */
    bool returned;        /* from STALLED, in this batch of replies: ready_changed is to be called */

    struct redlock_lookup *lookup; /* outlives the try that began it: one at a time */
    struct redlock_endpoints endpoints;
    size_t endpoint, endpoints_tried, endpoint_first;

    struct redlock_handshake handshake;
    char known_run_id[REDLOCK_INFO_WORD_SIZE]; /* of the last connection that was READY, and its id there (R9) */
    int64_t known_client_id;
    struct redlock_clock_sample clock; /* guarded: as the handshake told */
    struct redlock_reader *reader;
    struct redlock_outbox hello;  /* the handshake's */
    struct redlock_outbox outbox; /* requests */
    struct redlock_inflight inflight;

    struct redlock_text *why;                   /* it is not READY; NULL when it is */
    struct redlock_text *refusal;               /* made of that when first asked for */
    struct redlock_text *yields;                /* it must give way to another node: why */
    struct redlock_text *timed_out, *withdrawn; /* what a vote says at its timeout */

    struct redlock_info info; /* of the last handshake that got so far */
    char warning[REDLOCK_HANDSHAKE_TEXT_SIZE];
    int64_t round_trip_us;
    uint64_t connects;
};

static inline bool redlock_node_is_up(const struct redlock_node *node) {
    return node->phase == REDLOCK_PHASE_READY || node->phase == REDLOCK_PHASE_STALLED;
}

static inline bool redlock_node_is_connecting(const struct redlock_node *node) {
    return node->phase <= REDLOCK_PHASE_GREETING;
}

/* node.c */

/* The try or the connection is over: closes it with RST (R9), answers what is in flight, waits for the next try. Takes
 * over the text. */
void redlock_node_lost(struct redlock_node *node, struct redlock_text *why);
/* Likewise, but the node may not vote until something changes at the server (R18). */
void redlock_node_unusable(struct redlock_node *node, struct redlock_text *why);
void redlock_node_set_phase(struct redlock_node *node, enum redlock_node_phase phase, struct redlock_text *why);
/* Asks for the timer if what is due next is due before it. */
void redlock_node_rearm(struct redlock_node *node, int64_t due_ns);
/* "connection refused" for ECONNREFUSED. */
struct redlock_text *redlock_node_errno_text(const char *prefix, int error);

/* The same server as the node named `rival` (R18). */
struct redlock_text *redlock_node_twice_text(const char *rival);

/* connect.c */

void redlock_connect_begin(struct redlock_node *node);
void redlock_connect_io(struct redlock_node *node, unsigned events);                      /* RESOLVING, OPENING */
void redlock_connect_due(struct redlock_node *node, int64_t now_ns);                      /* any CONNECTING phase */
void redlock_connect_reply(struct redlock_node *node, const struct redlock_reply *reply); /* GREETING */

/* traffic.c */

void redlock_traffic_io(struct redlock_node *node, unsigned events); /* GREETING and up */
void redlock_traffic_flush(struct redlock_node *node);
void redlock_traffic_due(struct redlock_node *node, int64_t now_ns); /* any phase */
/* Answers all that is in flight: the connection is gone. */
void redlock_traffic_end(struct redlock_node *node);
/* When the next request times out. */
int64_t redlock_traffic_next_ns(const struct redlock_node *node);

#endif
