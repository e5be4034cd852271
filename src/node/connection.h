/* One connection to a node: its socket, the bytes that wait for it, the replies it owes. */
#ifndef REDLOCK_NODE_CONNECTION_H
#define REDLOCK_NODE_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "loop/reactor.h"
#include "node/inflight.h"
#include "node/outbox.h"
#include "wire/reply.h"

/* It decides nothing: its owner opens it, ends it, and answers the requests lost with it. */
struct redlock_connection {
    struct redlock_watch watch; /* first; the owner sets its callbacks and uses its timer */
    const struct redlock_reactor *reactor;
    int fd;       /* -1 for none */
    bool blocked; /* the socket is full: writes wait until it is writable */
    struct redlock_reader *reader;
    struct redlock_outbox hello;      /* the handshake's bytes */
    struct redlock_outbox outbox;     /* the requests', which may wait for the handshake */
    struct redlock_inflight inflight; /* the requests in `outbox`, until their replies come */
};

/* Sets all but the callbacks of `watch`. Returns 0 or REDLOCK_ERR_NO_MEMORY. */
int redlock_connection_init(struct redlock_connection *connection, const struct redlock_reactor *reactor);

/* Frees everything. A plain close: the node still reads what was written, releases among it. */
void redlock_connection_free(struct redlock_connection *connection);

/* Begins to connect; the watch is told when that is over. Returns 0 or an errno. */
int redlock_connection_open(struct redlock_connection *connection, const struct sockaddr *address, socklen_t size);

/* What became of that: 0 or an errno. */
int redlock_connection_opened(const struct redlock_connection *connection);

/* It is open: bytes may go both ways from now on. Returns false without memory. */
bool redlock_connection_start(struct redlock_connection *connection);

/* Gives up a socket on which nothing was written. */
void redlock_connection_close(struct redlock_connection *connection);

/* Ends it with RST: the node throws away what it has not read yet (R9). Requests stay until their
 * owner has answered them. Stops the watch even where there is no socket. */
void redlock_connection_reset(struct redlock_connection *connection);

/* Hands what waits in `box`, one of the connection's own, to the layer below, as far as that takes
 * it; the rest waits until the socket is writable. Returns 0 or an errno. */
int redlock_connection_write(struct redlock_connection *connection, struct redlock_outbox *box);

/* The socket is writable again. */
void redlock_connection_unblock(struct redlock_connection *connection);

/* Reads once, into a buffer that must live until redlock_connection_next() says MORE. Returns how
 * many bytes came, 0 if the node closed the connection, or a negative errno: -EAGAIN if nothing has
 * come, -ENOMEM without memory for a reply. */
ssize_t redlock_connection_read(struct redlock_connection *connection, char *buffer, size_t size);

/* The next reply of what was read. It is overwritten by the next call. */
static inline enum redlock_read redlock_connection_next(struct redlock_connection *connection,
                                                        const struct redlock_reply **reply) {
    return redlock_reader_next(connection->reader, reply);
}

/* Queues a request behind the others; sets the entry's position. Returns false without memory, or
 * over the limit. */
static inline bool redlock_connection_queue(struct redlock_connection *connection, const char *bytes, size_t size,
                                            struct redlock_inflight_entry *entry) {
    entry->position = redlock_outbox_end(&connection->outbox);
    if (!redlock_outbox_append(&connection->outbox, bytes, size)) {
        return false;
    }
    if (!redlock_inflight_push(&connection->inflight, entry)) {
        redlock_outbox_withdraw(&connection->outbox, entry->position, size);
        return false;
    }
    return true;
}

/* Takes out `count` requests from `index` on, none of them written. */
void redlock_connection_withdraw(struct redlock_connection *connection, size_t index, size_t count);

/* Drops all requests. */
void redlock_connection_forget(struct redlock_connection *connection);

/*
 * R4: a request is written once its first byte was handed to the layer below. From then on the node
 * may run it, so the answer to a request that is lost is UNKNOWN. Until then no byte of it can
 * reach the node, so FAILED is true.
 */
static inline bool redlock_connection_has_written(const struct redlock_connection *connection,
                                                  const struct redlock_inflight_entry *entry) {
    return entry->position < connection->outbox.written;
}

/* Whether the node may send a reply now: some request was written and is not answered (R20). */
static inline bool redlock_connection_owes_reply(const struct redlock_connection *connection) {
    return connection->inflight.count > 0 &&
           redlock_connection_has_written(connection, redlock_inflight_at(&connection->inflight, 0));
}

#endif
