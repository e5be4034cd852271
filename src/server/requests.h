/* A server's requests: send, time out, lose with the connection (R4, R6, R7, R9). */
#ifndef REDLOCK_SERVER_REQUESTS_H
#define REDLOCK_SERVER_REQUESTS_H

#include "server/server_state.h"

static inline bool redlock_requests_has_no_timeout(const struct redlock_inflight_entry *entry) {
    return (entry->reply_kind & REDLOCK_SERVER_NO_TIMEOUT) != 0;
}

/* Cannot overflow: queued_ns is in the past, and the timeout is a minute at most. */
static inline int64_t redlock_requests_timeout_at_ns(const struct redlock_server *server,
                                                     const struct redlock_inflight_entry *entry) {
    return entry->queued_ns + server->timeout_ns;
}

/* A request that waits for the first connection has no node timeout before that is READY (R7). One
 * that is kept because a silent connection is replaced has. */
static inline bool redlock_requests_are_timed(const struct redlock_server *server) {
    return redlock_server_is_up(server) || server->resumes;
}

/* The copy of the entry gets its position. Returns false without memory. */
__attribute__((always_inline)) static inline bool redlock_requests_queue(struct redlock_server *server,
                                                                         const char *bytes, size_t size,
                                                                         const struct redlock_inflight_entry *entry) {
    if (!redlock_connection_queue(&server->connection, bytes, size, entry)) {
        return false;
    }
    if (redlock_requests_are_timed(server)) {
        if (!redlock_list_is_in(&server->connection.watch.to_flush)) { /* seldom */
            server->reactor.flush_soon(server->reactor.ctx, &server->connection.watch);
        }
        redlock_server_rearm(server, redlock_requests_timeout_at_ns(server, entry));
    }
    return true;
}

/* Queues the server's own command, as redlock_handshake_say() does. Without memory it drops the
 * command: the stall limit or the next NOSCRIPT makes up for it. */
void redlock_requests_say(struct redlock_server *server, const char *const words[4]);
void redlock_requests_ping(struct redlock_server *server);

/* The script of shared locks or of slots (REDLOCK_KIND_SHARED, REDLOCK_KIND_SLOTS), in front of the
 * first request that runs it. Who has only locks need not pay for it in the handshake. */
void redlock_requests_load(struct redlock_server *server, unsigned kind);

/* The server has become ready: only now the timeouts of those that waited for that begin. */
void redlock_requests_begin(struct redlock_server *server);

/* When the next request times out. */
int64_t redlock_requests_next_ns(const struct redlock_server *server);

/* Answers the requests that have timed out. */
void redlock_requests_expire(struct redlock_server *server, int64_t now_ns);

/* Answers all requests, because the connection is gone. */
void redlock_requests_end(struct redlock_server *server);

/* Answers those that were not written: the server is STALLED. */
void redlock_requests_end_kept(struct redlock_server *server, int64_t now_ns);

/* Answers only those that were written. The others wait for the next connection. */
void redlock_requests_end_written(struct redlock_server *server);

#endif
