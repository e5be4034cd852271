/* The life of one connection until it is open (R16): address, socket, TLS, greeting. */
#ifndef REDLOCK_SERVER_LINK_H
#define REDLOCK_SERVER_LINK_H

#include "base/text.h"
#include "server/address.h"
#include "server/callbacks.h"
#include "server/connection.h"
#include "server/resolve.h"

/*
 * A server has two links: the dial, whose connection is taken over when the server has said who it
 * is, and the subscription. Each says words of its own; how it comes up and fails is the same.
 *
 * state      event                                       → state
 * OFF        a connection is wanted                      → RESOLVING, WAITING
 * WAITING    due_ns                                      → RESOLVING
 * RESOLVING  the addresses are known                     → OPENING
 * OPENING    the socket is open                          → SECURING with TLS, GREETING without
 *            refused, due_ns; one more address           → OPENING
 * SECURING   secured                                     → GREETING
 * GREETING   the owner has heard enough                  → OPEN; OFF, if another takes it over
 * RESOLVING to GREETING: give_up_ns; any: failed, closed → the owner's choice: WAITING, OFF
 */
enum redlock_link_state {
    REDLOCK_LINK_OFF,
    REDLOCK_LINK_WAITING,   /* for the next try */
    REDLOCK_LINK_RESOLVING, /* a lookup may be running */
    REDLOCK_LINK_OPENING,   /* connecting to endpoints[endpoint] */
    REDLOCK_LINK_SECURING,  /* the handshake of TLS */
    REDLOCK_LINK_GREETING,
    REDLOCK_LINK_OPEN
};

struct redlock_link;

/* What the owner of a link does. */
struct redlock_link_ops {
    const char *purpose; /* of the greeting: "no memory for %s" */
    const char *lacks;   /* a greeting that takes too long: "connected, but %s within 50 ms" */
    /* Puts the first words into `hello`. Returns false without memory. */
    bool (*greet)(struct redlock_link *link);
    redlock_connection_take take;
    /* Why there is nothing more to read: END or PROTOCOL. */
    struct redlock_text *(*why)(const struct redlock_link *link, enum redlock_received received, int error);
    /* Ends the link. Takes over the text. */
    void (*failed)(struct redlock_link *link, struct redlock_text *why);
    /* RESOLVING: the lookup's descriptor is readable. */
    void (*resolved)(struct redlock_link *link);
    /* OFF, WAITING, OPEN: due_ns has come. */
    void (*due)(struct redlock_link *link);
};

struct redlock_link {
    /* Its watch is the first member, so a watch pointer is a link pointer. */
    struct redlock_connection connection;
    const struct redlock_link_ops *ops;
    const struct redlock_address *address;
    const struct redlock_server_options *options;
    enum redlock_link_state state;
    int64_t due_ns;
    int64_t give_up_ns; /* when this try ends, with all of the handshake */
    const struct redlock_endpoint *endpoints;
    size_t endpoint_count, endpoint, tried, first;
};

/* What it is given must outlive it. Returns 0 or REDLOCK_ERR_NO_MEMORY. */
int redlock_link_init(struct redlock_link *link, const struct redlock_link_ops *ops,
                      const struct redlock_reactor *reactor, const struct redlock_address *address,
                      const struct redlock_server_options *options);

/* A try begins: RESOLVING, for the connect timeout at most. */
void redlock_link_begin(struct redlock_link *link);

/* The addresses are known. The list must outlive the try. */
void redlock_link_open(struct redlock_link *link, const struct redlock_endpoint *endpoints, size_t count);

/* Sets the state, and when its time is over. */
void redlock_link_set(struct redlock_link *link, enum redlock_link_state state, int64_t due_ns);

/* Ends it with RST (R9): OFF, or WAITING until due_ns. */
void redlock_link_end(struct redlock_link *link);
void redlock_link_wait(struct redlock_link *link, int64_t due_ns);

/* Writes what is in `hello`. The watch's on_flush(), if the owner has none of its own. */
void redlock_link_flush(struct redlock_watch *watch);

static inline void redlock_link_flush_soon(struct redlock_link *link) {
    link->connection.reactor->flush_soon(link->connection.reactor->ctx, &link->connection.watch);
}

static inline int64_t redlock_link_now_ns(const struct redlock_link *link) {
    return link->connection.reactor->now_ns(link->connection.reactor->ctx);
}

/* One address that accepts and stays silent must not block the others: begin with the next. */
static inline void redlock_link_prefer_next(struct redlock_link *link) {
    link->first = link->endpoint + 1;
}

#define REDLOCK_LINK_FAILURES_MAX 64 /* more make no difference to the delay */

/* Counts a failure in *failures and returns the delay before the next try (R16). A connection that
 * stood long enough since up_ns is no failed try. REDLOCK_NEVER_NS: it never stood. */
int64_t redlock_link_delay_ns(int64_t now_ns, uint32_t *jitter, unsigned *failures, int64_t up_ns);

/* Why a connection failed. */

/* A failed read. 0: the server closed the connection; EPROTO: what TLS says. */
struct redlock_text *redlock_link_read_text(const struct redlock_connection *connection, int error);
/* An errno: "connection refused" for ECONNREFUSED. */
struct redlock_text *redlock_link_errno_text(const char *prefix, int error);
/* What is no reply (REDLOCK_RECEIVED_PROTOCOL). hint: for the end of its question, or "". */
struct redlock_text *redlock_link_garbled_text(const struct redlock_connection *connection, const char *hint);
/* An answer that nobody has asked for (R20). */
struct redlock_text *redlock_link_unasked_text(void);
/* Greeted, and not answered in time. */
struct redlock_text *redlock_link_unanswered_text(const struct redlock_link *link);

#endif
