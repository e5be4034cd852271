/* One connection to a node. */
#include "node/connection.h"

#include <errno.h>
#include <unistd.h>

#include "core/planted.h"
#include "node/stream.h"

#define READ_SIZE    16384
#define READS_A_TURN 16 /* so that other descriptors of the loop get their turn */

static void watch(struct redlock_connection *connection, int fd, unsigned events) {
    connection->reactor->watch(connection->reactor->ctx, &connection->watch, fd, events);
}

int redlock_connection_init(struct redlock_connection *connection, const struct redlock_reactor *reactor) {
    connection->reactor = reactor;
    connection->fd = -1;
    return reactor->attach(reactor->ctx, &connection->watch);
}

void redlock_connection_free(struct redlock_connection *connection) {
    connection->reactor->detach(connection->reactor->ctx, &connection->watch);
    if (connection->fd >= 0) {
        (void)close(connection->fd);
    }
    redlock_reader_delete(connection->reader);
    redlock_outbox_clear(&connection->hello);
    redlock_connection_forget(connection);
}

int redlock_connection_open(struct redlock_connection *connection, const struct sockaddr *address, socklen_t size) {
    int fd = redlock_stream_open(address, size);
    if (fd < 0) {
        return -fd;
    }
    connection->fd = fd;
    watch(connection, fd, REDLOCK_WRITABLE);
    return 0;
}

int redlock_connection_opened(const struct redlock_connection *connection) {
    return redlock_stream_connected(connection->fd);
}

bool redlock_connection_start(struct redlock_connection *connection) {
    redlock_reader_delete(connection->reader);
    connection->reader = redlock_reader_new();
    watch(connection, connection->fd, REDLOCK_READABLE);
    return connection->reader != NULL;
}

void redlock_connection_close(struct redlock_connection *connection) {
    watch(connection, -1, 0);
    (void)close(connection->fd);
    connection->fd = -1;
}

void redlock_connection_reset(struct redlock_connection *connection) {
    watch(connection, -1, 0);
    if (connection->fd >= 0 && REDLOCK_PLANTED(PLAIN_CLOSE)) {
        (void)close(connection->fd);
    } else if (connection->fd >= 0) {
        redlock_stream_reset(connection->fd);
    }
    connection->fd = -1;
    connection->blocked = false;
    redlock_outbox_clear(&connection->hello);
}

int redlock_connection_write(struct redlock_connection *connection, struct redlock_outbox *box) {
    size_t size = redlock_outbox_size(box);
    if (connection->fd < 0 || connection->blocked || size == 0) {
        return 0;
    }
    ssize_t sent = redlock_stream_write(connection->fd, box->bytes + box->head, size);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        return errno;
    }
    if (sent > 0) {
        redlock_outbox_wrote(box, (size_t)sent);
    }
    if ((size_t)(sent > 0 ? sent : 0) < size) {
        connection->blocked = true;
        watch(connection, connection->fd, REDLOCK_READABLE | REDLOCK_WRITABLE);
    }
    return 0;
}

void redlock_connection_unblock(struct redlock_connection *connection) {
    connection->blocked = false;
    watch(connection, connection->fd, REDLOCK_READABLE);
}

/* Takes the replies in the bytes that were read. */
static enum redlock_received take_all(struct redlock_connection *connection, redlock_connection_take take, int *error) {
    const int64_t now_ns = connection->reactor->now_ns(connection->reactor->ctx);
    const struct redlock_reply *reply;
    while (connection->fd >= 0) {
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

enum redlock_received redlock_connection_receive(struct redlock_connection *connection, redlock_connection_take take,
                                                 int *error) {
    char buffer[READ_SIZE];
    for (int i = 0; i < READS_A_TURN; i++) {
        const ssize_t got = redlock_stream_read(connection->fd, buffer, sizeof buffer);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            break;
        }
        if (got <= 0 || !redlock_reader_feed(connection->reader, buffer, (size_t)got)) {
            *error = got == 0 ? 0 : got < 0 ? errno : ENOMEM;
            return REDLOCK_RECEIVED_END;
        }
        const enum redlock_received received = take_all(connection, take, error);
        if (received != REDLOCK_RECEIVED || connection->fd < 0 || (size_t)got < sizeof buffer) {
            return received;
        }
    }
    return REDLOCK_RECEIVED;
}

void redlock_connection_withdraw(struct redlock_connection *connection, size_t index, size_t count) {
    struct redlock_inflight *inflight = &connection->inflight;
    const size_t next = index + count;
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
