/* A server's second connection, which only subscribes: it hears who was handed a lock. */
#ifndef REDLOCK_SERVER_SUBSCRIPTION_H
#define REDLOCK_SERVER_SUBSCRIPTION_H

#include "base/text.h"
#include "server/link.h"
#include "wire/channel.h"
#include "wire/info.h"

/*
 * Its link (link.h) is OPEN when it *listens*. WAITING is a random delay (R16), and so is the one
 * that follows when SUBSCRIBE is not permitted, or unknown: that begins at 1 s and ends at 10 s.
 *
 * link      event                                                → link
 * OFF       the server is READY, and a channel is given          → WAITING, until now
 * WAITING   due_ns                                               → RESOLVING: the address is known
 * GREETING  SUBSCRIBE is confirmed                               → OPEN
 *           SUBSCRIBE is refused, another server, another error  → WAITING
 * OPEN      out of protocol, no PONG at due_ns                   → WAITING
 * any       failed                                               → WAITING
 *           the first connection ends                            → OFF
 *
 * GREETING says AUTH, INFO, CLIENT ID and CLIENT SETNAME; then CLIENT KILL, if there is a zombie,
 * as soon as the server is known; then SUBSCRIBE. OPEN sends PING at due_ns.
 *
 * A *zombie* is the server's end of a subscription that died without a sound. The server does not
 * see such a death for minutes. Until then it counts the dead connection as one that listens. That
 * does no harm as long as its manager lives. But when that dies, its waiters would look alive, and
 * be handed locks. So the next connection to the same run of the server kills the dead one by its
 * id, before it subscribes.
 *
 * What the callbacks are told is another matter, `refused`:
 *
 * refused    event                                                → refused
 * no         SUBSCRIBE is not permitted, or unknown               → yes; tell REFUSED
 *            the third time in a row that it fails without having listened in between,
 *            while the server is READY                            → yes; tell REFUSED
 * yes        it listens                                           → no; tell LISTENING
 *            the first connection ends                            → no
 *
 * Between the tries it stays. So whoever waits does not change its way all the time.
 *
 * While it listens, it subscribes to the other channels, one after the other: an error says
 * only by its place in the order which one it refuses.
 *
 * a channel   event                                  → it is
 * silent      no other one is asked                  → asked
 * asked       confirmed                              → heard
 *             not permitted                          → refused
 * refused     PING is due: it may be permitted now   → silent
 * any         it does not listen any more            → silent
 */
#define REDLOCK_SUBSCRIPTION_STEPS_MAX 6

struct redlock_subscription {
    /* The first member, so a link pointer is a subscription pointer. What it sends goes into
     * `hello`. */
    struct redlock_link link;
    /* Of the server: whom to tell, where to go, and its run_id; "" if it is unknown. */
    const struct redlock_server_callbacks *callbacks;
    unsigned index;
    uint32_t *jitter;
    const struct redlock_endpoint *endpoint;
    const char *run_id;
    bool is_ready;        /* the server is READY, not only STALLED */
    const char *channel;  /* NULL before redlock_node_listen() */
    int64_t up_ns;        /* it listens since then */
    unsigned failures;    /* failed tries in a row, for the backoff (R16) */
    unsigned unconfirmed; /* of these, the tries while the server was READY */
    unsigned refusals;    /* of SUBSCRIBE in a row, for their own backoff */
    bool refused;         /* the callbacks were told REFUSED, and has not listened since */
    bool pinged;          /* OPEN: the PONG is due at due_ns */
    bool push_warned, refusal_warned;
    uint32_t leaving; /* replies to UNSUBSCRIBE that are to come */
    /* Of these, before that of the channel asked for. */
    uint32_t leaving_first;
    bool no_memory; /* to leave a channel; found at the next flush */
    /* For one of the channels; the reply is to come. */
    bool asking;
    const struct redlock_channels *channels;       /* none before redlock_node_hear() */
    struct redlock_channel *asked;                 /* NULL if it has left meanwhile */
    uint8_t steps[REDLOCK_SUBSCRIPTION_STEPS_MAX]; /* GREETING: the replies to expect */
    uint8_t step, step_count;
    int64_t client_id; /* of this connection; 0 if the server did not say */
    /* Of the zombie, and of its server; 0: there is none. */
    int64_t zombie_id;
    char zombie_run_id[REDLOCK_INFO_WORD_SIZE];
    struct redlock_text *why; /* the last failure since it listened */
};

/* The members of the server are set. Returns 0 or REDLOCK_ERR_NO_MEMORY. */
int redlock_subscription_init(struct redlock_subscription *subscription, const struct redlock_reactor *reactor,
                              const struct redlock_address *address, const struct redlock_server_options *options);
void redlock_subscription_free(struct redlock_subscription *subscription);

/* The server has become READY on a new connection, or has a channel now. */
void redlock_subscription_begin(struct redlock_subscription *subscription);

static inline bool redlock_subscription_listens(const struct redlock_subscription *subscription) {
    return subscription->link.state == REDLOCK_LINK_OPEN;
}

/* Subscribes to the next of `channels`, if it listens. */
void redlock_subscription_hear(struct redlock_subscription *subscription);
/* The channel leaves the list. */
void redlock_subscription_leave(struct redlock_subscription *subscription, const struct redlock_channel *channel);

/* The server's first connection has ended. */
void redlock_subscription_end(struct redlock_subscription *subscription, struct redlock_text *why);

#endif
