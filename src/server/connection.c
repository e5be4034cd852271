/* One connection to a server. */
#include "server/connection.h"

#include <assert.h>
#include <errno.h>

#include "core/planted.h"

#define READ_SIZE    16384
#define READS_A_TURN 16 /* so that other descriptors of the loop get their turn */

static void watch(struct redlock_connection *connection, int fd, unsigned events) {
    connection->reactor->watch(connection->reactor->ctx, &connection->watch, fd, events);
}

int redlock_connection_init(struct redlock_connection *connection, const struct redlock_reactor *reactor) {
    assert(connection->reactor == NULL);
    const int error = reactor->attach(reactor->ctx, &connection->watch);
    connection->reactor = error == 0 ? reactor : NULL;
    connection->stream.fd = -1;
    return error;
}

void redlock_connection_free(struct redlock_connection *connection) {
    if (connection->reactor == NULL) {
        return;
    }
    connection->reactor->detach(connection->reactor->ctx, &connection->watch);
    redlock_stream_close(&connection->stream, false);
    redlock_tls_free(connection->tls);
    redlock_reader_delete(connection->reader);
    redlock_outbox_clear(&connection->hello);
    redlock_connection_forget(connection);
}

int redlock_connection_open(struct redlock_connection *connection, const struct sockaddr *address, socklen_t size) {
    assert(connection->stream.fd < 0);
    const int error = redlock_stream_open(&connection->stream, address, size);
    if (error == 0) {
        watch(connection, connection->stream.fd, REDLOCK_WRITABLE);
    }
    return error;
}

static void watch_open(struct redlock_connection *connection) {
    watch(connection, connection->stream.fd,
          connection->blocked ? REDLOCK_READABLE | REDLOCK_WRITABLE : REDLOCK_READABLE);
}

bool redlock_connection_start(struct redlock_connection *connection) {
    assert(connection->stream.fd >= 0);
    redlock_reader_delete(connection->reader);
    connection->reader = redlock_reader_new();
    watch_open(connection);
    return connection->reader != NULL;
}

void redlock_connection_close(struct redlock_connection *connection) {
    assert(connection->stream.fd >= 0 && connection->tls == NULL);
    watch(connection, -1, 0);
    redlock_stream_close(&connection->stream, false);
}

void redlock_connection_reset(struct redlock_connection *connection) {
    watch(connection, -1, 0);
    redlock_stream_close(&connection->stream, !REDLOCK_PLANTED(PLAIN_CLOSE));
    connection->blocked = connection->unread = false;
    redlock_tls_free(connection->tls);
    connection->tls = NULL;
    redlock_outbox_clear(&connection->hello);
}

void redlock_connection_take_over(struct redlock_connection *connection, struct redlock_connection *from) {
    assert(connection->stream.fd < 0 && connection->tls == NULL && redlock_outbox_size(&connection->hello) == 0);
    redlock_reader_delete(connection->reader);
    watch(from, -1, 0);
    redlock_stream_move(&connection->stream, &from->stream);
    connection->blocked = from->blocked;
    connection->unread = from->unread;
    connection->reader = from->reader;
    connection->tls = from->tls;
    connection->hello = from->hello;
    from->blocked = from->unread = false;
    from->reader = NULL;
    from->tls = NULL;
    from->hello = (struct redlock_outbox){0};
    watch_open(connection);
}

void redlock_connection_drop_begun(struct redlock_connection *connection) {
    struct redlock_outbox *outbox = &connection->outbox;
    const struct redlock_inflight *inflight = &connection->inflight;
    const uint64_t written = outbox->written;
    uint64_t next = redlock_outbox_end(outbox);
    for (size_t i = inflight->count; i-- > 0 && redlock_inflight_at(inflight, i)->position >= written;) {
        next = redlock_inflight_at(inflight, i)->position;
    }
    for (size_t i = inflight->count; i-- > 0 && redlock_inflight_at(inflight, i)->position >= written;) {
        redlock_inflight_at(inflight, i)->position -= next - written;
    }
    redlock_outbox_withdraw(outbox, written, (size_t)(next - written));
}

/* Writes to the socket. */
__attribute__((always_inline)) static inline int write_to_socket(struct redlock_connection *connection,
                                                                 struct redlock_outbox *box) {
    size_t size = redlock_outbox_size(box);
    if (connection->stream.fd < 0 || connection->blocked || size == 0) {
        return 0;
    }
    ssize_t sent = redlock_stream_write(connection->stream.fd, box->bytes + box->head, size);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        return errno;
    }
    if (sent > 0) {
        redlock_outbox_wrote(box, (size_t)sent);
    }
    if ((size_t)(sent > 0 ? sent : 0) < size) {
        connection->blocked = true;
        watch_open(connection);
    }
    return 0;
}

/* Encrypts no more than a record, and only while the wire is empty: what is encrypted counts as
 * written (R4). */
__attribute__((noinline, cold)) static int write_with_tls(struct redlock_connection *connection,
                                                          struct redlock_outbox *box) {
    struct redlock_outbox *wire = &connection->tls->wire;
    assert(box == wire || box == &connection->hello || box == &connection->outbox);
    for (;;) {
        int error = write_to_socket(connection, wire);
        size_t size = redlock_outbox_size(box);
        if (error != 0 || connection->blocked || size == 0 || box == wire) {
            return error;
        }
        size = size < REDLOCK_TLS_RECORD_MAX ? size : REDLOCK_TLS_RECORD_MAX;
        error = redlock_tls_write(connection->tls, box->bytes + box->head, size);
        if (error != 0) {
            return error;
        }
        redlock_outbox_wrote(box, size);
    }
}

int redlock_connection_write(struct redlock_connection *connection, struct redlock_outbox *box) {
    return connection->tls == NULL ? write_to_socket(connection, box) : write_with_tls(connection, box);
}

void redlock_connection_unblock(struct redlock_connection *connection) {
    assert(connection->stream.fd >= 0);
    connection->blocked = false;
    watch_open(connection);
}

bool redlock_connection_begin_tls(struct redlock_connection *connection, struct redlock_tls_context *context,
                                  const char *host) {
    assert(connection->stream.fd >= 0 && connection->tls == NULL);
    connection->tls = redlock_tls_new(context, host, connection->stream.fd);
    watch_open(connection);
    return connection->tls != NULL;
}

enum redlock_tls_progress redlock_connection_secure(struct redlock_connection *connection, int *error) {
    assert(connection->stream.fd >= 0 && connection->tls != NULL);
    enum redlock_tls_progress progress = redlock_tls_handshake(connection->tls);
    *error = redlock_connection_write(connection, &connection->tls->wire);
    if (progress == REDLOCK_TLS_WAITING && *error != 0) {
        progress = redlock_tls_handshake(connection->tls); /* the server may have said why */
    }
    if (progress == REDLOCK_TLS_FAILED) {
        *error = EPROTO;
    }
    if (*error != 0) {
        return REDLOCK_TLS_FAILED;
    }
    connection->unread = progress == REDLOCK_TLS_SECURED && redlock_tls_has_unread(connection->tls);
    return progress;
}

/* Takes the replies in the bytes that were read. */
static enum redlock_received take_all(struct redlock_connection *connection, redlock_connection_take take, int *error) {
    const int64_t now_ns = connection->reactor->now_ns(connection->reactor->ctx);
    const struct redlock_reply *reply;
    while (connection->stream.fd >= 0) {
        switch (redlock_reader_next(connection->reader, &reply)) {
        case REDLOCK_READ_REPLY:
            take(connection, reply, now_ns);
            break;
        case REDLOCK_READ_MORE:
            return REDLOCK_RECEIVED;
        case REDLOCK_READ_PROTOCOL:
            return REDLOCK_RECEIVED_PROTOCOL;
        case REDLOCK_READ_NO_MEMORY:
            *error = ENOMEM;
            return REDLOCK_RECEIVED_END;
        }
    }
    return REDLOCK_RECEIVED;
}

/* After a turn of reads with TLS, which its limit may have ended. */
__attribute__((noinline, cold)) static enum redlock_received end_turn(struct redlock_connection *connection,
                                                                      bool by_limit) {
    connection->unread = by_limit && redlock_tls_has_unread(connection->tls);
    connection->tls->drained = false;
    if (redlock_outbox_size(&connection->tls->wire) > 0) {
        /* Such as the refusal of a renegotiation. */
        connection->reactor->flush_soon(connection->reactor->ctx, &connection->watch);
    }
    return connection->unread ? REDLOCK_RECEIVED_UNREAD : REDLOCK_RECEIVED;
}

enum redlock_received redlock_connection_receive(struct redlock_connection *connection, redlock_connection_take take,
                                                 int *error) {
    char buffer[READ_SIZE];
    int reads = 0;
    for (; reads < READS_A_TURN; reads++) {
        const ssize_t got = connection->tls == NULL ? redlock_stream_read(connection->stream.fd, buffer, sizeof buffer)
                                                    : redlock_tls_read(connection->tls, buffer, sizeof buffer);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            break;
        }
        if (got <= 0 || !redlock_reader_feed(connection->reader, buffer, (size_t)got)) {
            *error = got == 0 ? 0 : got < 0 ? errno : ENOMEM;
            return REDLOCK_RECEIVED_END;
        }
        const enum redlock_received received = take_all(connection, take, error);
        /* A socket that gave less has no more; a record may be followed by others. */
        const bool drained = connection->tls == NULL && (size_t)got < sizeof buffer;
        if (received != REDLOCK_RECEIVED || drained || connection->stream.fd < 0) {
            return received;
        }
        if (connection->tls != NULL && connection->tls->drained && !redlock_tls_has_unread(connection->tls)) {
            break;
        }
    }
    return connection->tls == NULL ? REDLOCK_RECEIVED : end_turn(connection, reads == READS_A_TURN);
}

void redlock_connection_withdraw(struct redlock_connection *connection, size_t index, size_t count) {
    struct redlock_inflight *inflight = &connection->inflight;
    const size_t next = index + count;
    assert(count > 0 && next <= inflight->count);
    uint64_t begin = redlock_inflight_at(inflight, index)->position;
    uint64_t end = next < inflight->count ? redlock_inflight_at(inflight, next)->position
                                          : redlock_outbox_end(&connection->outbox);
    redlock_outbox_withdraw(&connection->outbox, begin, (size_t)(end - begin));
    redlock_inflight_withdraw(inflight, index, count, end - begin);
}

void redlock_connection_forget(struct redlock_connection *connection) {
    redlock_outbox_clear(&connection->outbox);
    redlock_inflight_clear(&connection->inflight);
}
