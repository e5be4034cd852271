/* The states of a node's second connection, which only subscribes. */
#ifndef REDLOCK_NODE_SUBSCRIPTION_STATE_H
#define REDLOCK_NODE_SUBSCRIPTION_STATE_H

#include "base/text.h"
#include "node/connection.h"
#include "wire/channel.h"
#include "wire/info.h"

struct redlock_node;

/*
 * state      event                                                → state
 * OFF        the node is READY, and a channel is given            → WAITING, until now
 * WAITING    due_ns; no descriptor is free                        → OPENING; WAITING
 * OPENING    writable                                             → GREETING; SECURING with TLS
 *            refused, due_ns                                      → WAITING
 * SECURING   secured                                              → GREETING
 *            a failure of TLS, closed, due_ns                     → WAITING
 * GREETING   SUBSCRIBE is confirmed                               → LISTENING
 *            SUBSCRIBE is not permitted, or unknown               → REFUSED
 *            another server, another error, closed, due_ns        → WAITING
 * LISTENING  closed, out of protocol, no PONG at due_ns           → WAITING
 * REFUSED    due_ns                                               → as WAITING
 * any        the first connection ends                            → OFF
 *
 * GREETING says AUTH, INFO, CLIENT ID and CLIENT SETNAME; then CLIENT KILL, if an older one may be
 * dead (zombie.h), as soon as the server is known; then SUBSCRIBE.
 *
 * LISTENING sends PING at due_ns. WAITING and REFUSED are random delays (R16); that of REFUSED
 * begins at 1 s and ends at 10 s.
 *
 * What the listener is told is another matter, `refused`:
 *
 * refused    event                                                → refused
 * no         SUBSCRIBE is not permitted, or unknown               → yes; tell REFUSED
 *            the third time in a row that it goes back to WAITING, without LISTENING in between,
 *            while the node is READY                              → yes; tell REFUSED
 * yes        LISTENING                                            → no; tell LISTENING
 *            the first connection ends                            → no
 *
 * Between the tries it stays. So whoever waits does not change its way all the time.
 *
 * While it is LISTENING, it subscribes to the other channels, one after the other: an error says
 * only by its place in the order which one it refuses.
 *
 * a channel   event                                  → it is
 * silent      no other one is asked                  → asked
 * asked       confirmed                              → heard
 *             not permitted                          → refused
 * refused     PING is due: it may be permitted now   → silent
 * any         no longer LISTENING                    → silent
 */
enum redlock_subscription_state {
    REDLOCK_SUBSCRIPTION_OFF,
    REDLOCK_SUBSCRIPTION_WAITING,
    REDLOCK_SUBSCRIPTION_OPENING,
    REDLOCK_SUBSCRIPTION_SECURING,
    REDLOCK_SUBSCRIPTION_GREETING,
    REDLOCK_SUBSCRIPTION_LISTENING,
    REDLOCK_SUBSCRIPTION_REFUSED
};

#define REDLOCK_SUBSCRIPTION_STEPS_MAX 6

struct redlock_subscription {
    /* Its watch is the first member, so a watch pointer is a subscription pointer. What it sends
     * goes into `hello`. */
    struct redlock_connection connection;
    struct redlock_node *node;
    const char *channel; /* NULL before redlock_node_listen() */
    enum redlock_subscription_state state;
    int64_t due_ns;
    int64_t up_ns;        /* LISTENING since then */
    unsigned failures;    /* failed tries in a row, for the backoff (R16) */
    unsigned unconfirmed; /* of these, the tries while the node was READY */
    unsigned refusals;    /* of SUBSCRIBE in a row, for their own backoff */
    bool refused;         /* the listener was told REFUSED, and not LISTENING since */
    bool pinged;          /* LISTENING: the PONG is due at due_ns */
    bool push_warned, refusal_warned;
    uint32_t leaving; /* replies to UNSUBSCRIBE that are to come */
    /* Of these, before that of the channel asked for. */
    uint32_t leaving_first;
    bool no_memory; /* to leave a channel; found at the next flush */
    /* For one of the channels; the reply is to come. */
    bool asking;
    const struct redlock_channels *channels;       /* NULL before redlock_node_hear() */
    struct redlock_channel *asked;                 /* NULL if it has left meanwhile */
    uint8_t steps[REDLOCK_SUBSCRIPTION_STEPS_MAX]; /* GREETING: the replies to expect */
    uint8_t step, step_count;
    int64_t client_id; /* of this connection; 0 if the server did not say */
    /* Of one that may be dead (zombie.h), and of its server; 0: there is none. */
    int64_t zombie_id;
    char zombie_run_id[REDLOCK_INFO_WORD_SIZE];
    struct redlock_text *why; /* the last failure since it was LISTENING */
};

#endif
