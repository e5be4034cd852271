/* The inside of a node: its connection, and when and why it is to be opened, ended or spared. */
#ifndef REDLOCK_NODE_NODE_STATE_H
#define REDLOCK_NODE_NODE_STATE_H

#include "node/connection.h"
#include "node/handshake.h"
#include "node/node.h"
#include "node/resolve.h"

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
    struct redlock_connection connection; /* first, as its watch is in it: a watch is its node */
    struct redlock_reactor reactor;
    struct redlock_node_listener listener;
    struct redlock_node_options options;
    struct redlock_address address;
    unsigned index;
    uint32_t jitter;

    enum redlock_node_phase phase;
    bool first_try_done; /* the first try is over: ready_changed was called */

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
    bool returned;        /* from STALLED, in this batch of replies: ready_changed() follows */

    struct redlock_lookup *lookup; /* outlives the try that began it: one at a time */
    struct redlock_endpoints endpoints;
    size_t endpoint, endpoints_tried, endpoint_first;

    struct redlock_handshake handshake;
    /* Of the last connection that was READY: its server, and its id there (R9). */
    char known_run_id[REDLOCK_INFO_WORD_SIZE];
    int64_t known_client_id;
    struct redlock_clock_sample clock; /* guarded: as the handshake told */

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

static inline int64_t redlock_node_now_ns(const struct redlock_node *node) {
    return node->reactor.now_ns(node->reactor.ctx);
}

/* Asks for the timer if what is due next is due before it. */
static inline void redlock_node_rearm(struct redlock_node *node, int64_t due_ns) {
    if (due_ns < node->timer_ns) {
        node->timer_ns = due_ns;
        node->reactor.timer_at(node->reactor.ctx, &node->connection.watch, due_ns);
    }
}

#endif
