/* One connection to a server: its socket, the bytes to write, the replies that the server owes. */
#ifndef REDLOCK_SERVER_CONNECTION_H
#define REDLOCK_SERVER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "loop/reactor.h"
#include "server/inflight.h"
#include "server/outbox.h"
#include "server/stream.h"
#include "server/tls.h"
#include "wire/reply.h"

/* The connection decides nothing. Its owner opens it, ends it, and answers the requests lost with
 * it. */
struct redlock_connection {
    struct redlock_watch watch; /* first; the owner sets its callbacks and uses its timer */
    const struct redlock_reactor *reactor;
    struct redlock_stream stream;
    bool blocked; /* the socket is full: writes wait until it is writable */
    bool unread;  /* TLS has bytes that no event tells of: receive soon */
    struct redlock_reader *reader;
    struct redlock_outbox hello;      /* bytes of the handshake */
    struct redlock_outbox outbox;     /* bytes of requests; they may wait for the handshake */
    struct redlock_inflight inflight; /* the requests in `outbox`, until their replies come */
    struct redlock_tls *tls;          /* NULL: the bytes go as they are */
};

/* Sets everything except the callbacks of `watch`. Returns 0 or REDLOCK_ERR_NO_MEMORY. */
int redlock_connection_init(struct redlock_connection *connection, const struct redlock_reactor *reactor);

/* Frees everything; accepts one that is all zero. A plain close: the server still reads what was
 * written, including releases. */
void redlock_connection_free(struct redlock_connection *connection);

/* Starts to connect. The watch reports the end: see redlock_stream_connected(). Returns 0 or an
 * errno. */
int redlock_connection_open(struct redlock_connection *connection, const struct sockaddr *address, socklen_t size);

/* Puts TLS on the opened connection to `host`, which is borrowed. Returns false without memory. */
bool redlock_connection_begin_tls(struct redlock_connection *connection, struct redlock_tls_context *context,
                                  const char *host);

/* Goes on with the handshake of TLS. WAITING: call it again when the socket is ready. SECURED: it
 * may be started. FAILED sets *error: an errno; EPROTO: see the failure of `tls`. */
enum redlock_tls_progress redlock_connection_secure(struct redlock_connection *connection, int *error);

/* Marks it as open for reads and writes. Returns false without memory. */
bool redlock_connection_start(struct redlock_connection *connection);

/* Closes a socket on which nothing was written. */
void redlock_connection_close(struct redlock_connection *connection);

/* Ends it with RST, so the server throws away what it has not read yet (R9). Requests stay until
 * their owner has answered them. Stops the watch even without a socket. */
void redlock_connection_reset(struct redlock_connection *connection);

/* Takes over the open socket of `from`, with what belongs to it. This one has no socket. The
 * requests of both stay where they are. */
void redlock_connection_take_over(struct redlock_connection *connection, struct redlock_connection *from);

/* Drops the rest of a request that is written in part: its connection is gone. */
void redlock_connection_drop_begun(struct redlock_connection *connection);

/* Writes the bytes in `box`, one of the connection's own, as far as the layer below accepts them.
 * The rest waits until the socket is writable. Returns 0 or an errno. */
int redlock_connection_write(struct redlock_connection *connection, struct redlock_outbox *box);

/* Call when the socket is writable again. */
void redlock_connection_unblock(struct redlock_connection *connection);

/* Takes a reply that was read at now_ns. It may end the connection. */
typedef void (*redlock_connection_take)(struct redlock_connection *connection, const struct redlock_reply *reply,
                                        int64_t now_ns);

enum redlock_received {
    REDLOCK_RECEIVED,         /* what has come for now, or until `take` ended the connection */
    REDLOCK_RECEIVED_UNREAD,  /* some of it: see `unread` */
    REDLOCK_RECEIVED_END,     /* of the connection: see *error */
    REDLOCK_RECEIVED_PROTOCOL /* what is no reply: redlock_reader_error() says why */
};

/* Reads what has come, and gives each reply to `take`. *error is set with END: an errno, or 0 if
 * the server closed the connection. EPROTO: see the failure of `tls`. */
enum redlock_received redlock_connection_receive(struct redlock_connection *connection, redlock_connection_take take,
                                                 int *error);

/* Queues a request after the others, with its position in the copy of the entry. Returns false
 * without memory, or over the limit. */
static inline bool redlock_connection_queue(struct redlock_connection *connection, const char *bytes, size_t size,
                                            const struct redlock_inflight_entry *entry) {
    if (!redlock_outbox_append(&connection->outbox, bytes, size)) {
        return false;
    }
    struct redlock_inflight_entry *queued = redlock_inflight_push(&connection->inflight, entry);
    const uint64_t position = redlock_outbox_end(&connection->outbox) - size;
    if (queued == NULL) {
        redlock_outbox_withdraw(&connection->outbox, position, size);
        return false;
    }
    queued->position = position;
    return true;
}

/* Removes `count` requests from `index` on. None of them is written. */
void redlock_connection_withdraw(struct redlock_connection *connection, size_t index, size_t count);

/* Drops all requests. */
void redlock_connection_forget(struct redlock_connection *connection);

/*
 * R4: a request counts as written once its first byte went to the layer below. From then on the
 * server may run it, so a lost request is UNKNOWN. Before that no byte can reach the server, so
 * FAILED is true. With TLS the layer below is the encryption: a record has its number, and cannot
 * be taken back.
 */
static inline bool redlock_connection_has_written(const struct redlock_connection *connection,
                                                  const struct redlock_inflight_entry *entry) {
    return entry->position < connection->outbox.written;
}

/* Returns whether the server may send a reply now: a written request is not answered yet (R20). */
static inline bool redlock_connection_owes_reply(const struct redlock_connection *connection) {
    return connection->inflight.count > 0 &&
           redlock_connection_has_written(connection, redlock_inflight_first(&connection->inflight));
}

#endif
