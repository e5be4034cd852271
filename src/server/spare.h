/* A second try beside a connection that is silent: when it begins, and what it ends. */
#ifndef REDLOCK_SERVER_SPARE_H
#define REDLOCK_SERVER_SPARE_H

#include "server/server_state.h"

/*
 * A connection can die without a sound: a NAT or a firewall has forgotten it, and drops what we
 * send, while new connections work. The server may as well hang, or be slow. So a spare is tried
 * beside the connection, and the first of the two that answers is the server's (R9, R17).
 *
 * A connection is *silent* if a request on it has timed out, and no reply was read for a node
 * timeout. To a far server, no reply can be here before a round trip: there it is two of these.
 *
 * spare    event                                         → spare
 * none     READY or STALLED, silent, again_ns is over    → trying: connect.c
 * trying   a reply comes on the connection               → none, again_ns is later
 *          the spare fails, or connect_timeout_ms        → none, again_ns is later
 *          the spare's server has said who it is, and
 *          nothing is to be read on the connection       → the connection is reset, what was
 *                                                          written there is UNKNOWN, and the
 *                                                          spare is the connection
 *          the connection ends in any other way          → none
 *
 * again_ns is a random backoff (R16). While a READY server tries, new requests are kept: whichever
 * connection answers first gets them, behind all earlier requests. They wait for a node timeout at
 * most. Where the spare reaches the same run of the server, they go there. A spare is *fresh* for
 * a node timeout: before that its server is not STALLED.
 */

/* Some requests have timed out. Sets the dial's timer to when a spare may begin. */
void redlock_spare_look(struct redlock_server *server, int64_t now_ns);

/* Returns whether it begins now. */
bool redlock_spare_is_due(const struct redlock_server *server, int64_t now_ns);

/* It was to begin now, but the connection is not silent any more. */
void redlock_spare_is_not_due(struct redlock_server *server, int64_t now_ns);

/* A reply was read on the connection. */
__attribute__((noinline, cold)) void redlock_spare_is_needless(struct redlock_server *server);

/* The spare has failed. */
void redlock_spare_in_vain(struct redlock_server *server, const char *why);

/* A try for a connection has failed: a spare leaves the server as it is. Takes over the text. */
void redlock_spare_or_server_fails(struct redlock_server *server, struct redlock_text *why);

/* The server is known. Ends the connection, and returns true if it is still silent. */
bool redlock_spare_replaces(struct redlock_server *server);

/* The spare is now the connection. */
void redlock_spare_replaced(struct redlock_server *server);

/* Returns whether new requests to a READY server are kept for now. */
static inline bool redlock_spare_keeps(const struct redlock_server *server) {
    return server->dial.link.state != REDLOCK_LINK_OFF ||
           (server->connection.inflight.expired > 0 && redlock_spare_is_due(server, redlock_server_now_ns(server)));
}

/* Returns whether the spare is fresh. Sees to it that the server is looked at when it is not. */
bool redlock_spare_is_fresh(struct redlock_server *server, int64_t now_ns);

#endif
