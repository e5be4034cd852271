/* A connection through the proxy. Bytes go on at once or through a pipe; ends follow in order. */
#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy.h"
#include "values/clock.h"

enum {
    ROUNDS_MAX = 16,      /* rounds of reading and writing in one turn, before other streams run */
    UNSENT_RETRY_MS = 20, /* between two checks whether the kernel has sent all before an end */
};

void proxy_socket_close(int fd, bool reset) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (reset) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    (void)close(fd);
}

static enum proxy_way way_of(const struct proxy_stream *stream) {
    return stream == &stream->connection->streams[PROXY_REQUESTS] ? PROXY_REQUESTS : PROXY_REPLIES;
}

static struct proxy_stream *opposite(struct proxy_stream *stream) {
    return &stream->connection->streams[1 - way_of(stream)];
}

static struct proxy_socket *source_of(struct proxy_stream *stream) {
    return &stream->connection->sockets[way_of(stream)];
}

static struct proxy_socket *target_of(struct proxy_stream *stream) {
    return &stream->connection->sockets[1 - way_of(stream)];
}

static struct proxy_server *proxy_of(const struct proxy_stream *stream) {
    return stream->connection->link->proxy;
}

static void wake_at(struct proxy_stream *stream, int64_t when_us) {
    proxy_agenda_at(&proxy_of(stream)->agenda, stream, when_us);
}

void proxy_connection_close(struct proxy_connection *connection, bool reset_client, bool reset_node) {
    struct proxy_link *link = connection->link;
    assert(!connection->closed);
    for (int i = 0; i < 2; i++) {
        wake_at(&connection->streams[i], PROXY_PIPE_NEVER_US);
        proxy_pipe_clear(&connection->streams[i].pipe);
        if (connection->sockets[i].source.fd >= 0) {
            proxy_socket_close(connection->sockets[i].source.fd, i == 0 ? reset_client : reset_node);
        }
    }
    *connection->self = connection->next;
    if (connection->next != NULL) {
        connection->next->self = connection->self;
    }
    connection->closed = true;
    connection->next = link->proxy->closed;
    link->proxy->closed = connection;
    if (link->connection_count-- == PROXY_CONNECTIONS_MAX) {
        proxy_listen(link, true);
    }
}

static void end_source(struct proxy_stream *stream, enum proxy_end end) {
    stream->source_ended = true;
    if (stream->state == PROXY_PASSING) {
        proxy_pipe_ends(&stream->pipe, end, tool_now_us());
    }
}

/* The receiver of this way is gone. This may close the connection. */
static void lose_target(struct proxy_stream *stream) {
    struct proxy_stream *back = opposite(stream);
    proxy_pipe_clear(&stream->pipe);
    stream->state = PROXY_DROPPING;
    back->source_lost = true;
    if (back->state == PROXY_DROPPING) {
        proxy_connection_close(stream->connection, true, true);
    } else if (back->source_ended) {
        back->state = PROXY_PASSING;
        proxy_pipe_ends(&back->pipe, PROXY_END_RESET, tool_now_us());
        wake_at(back, tool_now_us());
    }
}

/* The node refused or cannot be reached: act as if it had sent a RST. */
static void refuse(struct proxy_connection *connection) {
    end_source(&connection->streams[PROXY_REPLIES], PROXY_END_RESET);
    lose_target(&connection->streams[PROXY_REQUESTS]);
}

static void open_node(struct proxy_connection *connection) {
    static const int on = 1;
    struct proxy_link *link = connection->link;
    struct proxy_socket *node = &connection->sockets[1];
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(link->target), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    node->source.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (node->source.fd < 0) {
        proxy_complain(link, "open a socket to a node");
        connection->streams[PROXY_REQUESTS].retry_us = tool_now_us() + PROXY_RETRY_MS * 1000;
        return;
    }
    connection->node = PROXY_NODE_CONNECTING;
    (void)setsockopt(node->source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    bool asked = connect(node->source.fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS;
    if (!asked || !proxy_watch(link->proxy, &node->source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
        if (errno != ECONNREFUSED) {
            proxy_complain(link, "connect to a node");
        }
        refuse(connection);
    }
}

/* If nobody listens on the port, the kernel may choose it for this very socket. */
static bool is_connected_to_itself(int fd, uint16_t port) {
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    return getsockname(fd, (struct sockaddr *)&address, &size) == 0 && ntohs(address.sin_port) == port;
}

/* Handles the first event of the node's socket: it is connected, it failed, or it was connected and
 * then reset. Reading the error here clears it, so the stream's reader does not see it. */
static void connected(struct proxy_connection *connection) {
    int fd = connection->sockets[1].source.fd, error = 0;
    socklen_t size = sizeof error;
    connection->node = PROXY_NODE_OPEN;
    if (is_connected_to_itself(fd, connection->link->target)) {
        refuse(connection);
    } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        connection->streams[PROXY_REPLIES].source_lost = true;
    }
}

/* Forwards the bytes in the proxy's buffer. Without a delay they go on without a copy. */
static void keep(struct proxy_stream *stream, size_t size) {
    struct proxy_connection *connection = stream->connection;
    const char *bytes = proxy_of(stream)->buffer;
    if (proxy_pipe_is_clear(&stream->pipe) && connection->node == PROXY_NODE_OPEN && size > 0) {
        ssize_t sent = send(target_of(stream)->source.fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            lose_target(stream);
            return;
        }
        bytes += sent < 0 ? 0 : sent;
        size -= sent < 0 ? 0 : (size_t)sent;
    }
    if (size > 0 && !proxy_pipe_put(&stream->pipe, bytes, size, tool_now_us())) {
        proxy_complain(connection->link, "keep bytes that wait, so the connection is reset");
        proxy_connection_close(connection, true, true);
    }
}

/* Applies cuts and mishaps at an exact byte. Returns how many bytes go on, and whether the way
 * ends. */
static size_t meet_faults(struct proxy_stream *stream, size_t size, enum proxy_end *end) {
    struct proxy_link *link = stream->connection->link;
    const struct proxy_rule *rule = &stream->pipe.lane->rule;
    struct mishap *planned = &link->planned[way_of(stream)];
    const enum mishap_kind kind = planned->kind;
    int64_t allowed = rule->cut_after - stream->came;
    link->bytes[way_of(stream)] += (int64_t)size;
    stream->came += (int64_t)size;
    if (stream->deaf) {
        return 0;
    }
    if (rule->cut != 0 && (int64_t)size >= allowed) {
        *end = rule->cut == 2 ? PROXY_END_CUT_RESET : PROXY_END_CUT_FIN;
        size = allowed > 0 ? (size_t)allowed : 0;
    }
    size = mishap_meet(planned, &stream->marks, proxy_of(stream)->buffer, size);
    link->mishaps[kind] += planned->kind == MISHAP_NONE;
    if (stream->marks.cut) {
        *end = stream->marks.reset ? PROXY_END_CUT_RESET : PROXY_END_CUT_FIN;
    }
    return size;
}

/* Reads once. Returns false if there is nothing to read, or no room. */
static bool take(struct proxy_stream *stream) {
    struct proxy_socket *from = source_of(stream);
    enum proxy_end end = PROXY_END_NONE;
    if (!from->readable || stream->source_ended || proxy_pipe_is_full(&stream->pipe)) {
        return false;
    }
    ssize_t got = recv(from->source.fd, proxy_of(stream)->buffer, PROXY_READ_SIZE, 0);
    if (got > 0) {
        /* A short read means that nothing is left but an end. New bytes cause another event. */
        from->readable = got == PROXY_READ_SIZE || from->hung_up;
        size_t size = meet_faults(stream, (size_t)got, &end);
        if (stream->state == PROXY_PASSING) {
            keep(stream, size);
        }
        if (end != PROXY_END_NONE && !stream->connection->closed) {
            end_source(stream, end);
        }
        return true;
    }
    if (got < 0 && errno == EINTR) {
        return true;
    }
    from->readable = false;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return false;
    }
    end_source(stream, got < 0 || stream->source_lost ? PROXY_END_RESET : PROXY_END_FIN);
    if (got < 0) {
        lose_target(opposite(stream));
    }
    return false;
}

/* Returns whether the kernel has unsent bytes: a RST would drop them. */
static bool has_unsent(int fd) {
    int size = 0;
    return ioctl(fd, SIOCOUTQNSD, &size) == 0 && size > 0;
}

static void pass_end(struct proxy_stream *stream, enum proxy_end end) {
    int target = target_of(stream)->source.fd;
    if (end == PROXY_END_FIN) {
        /* Fails only if the target is lost, which its reader notices. */
        (void)shutdown(target, SHUT_WR);
        proxy_pipe_clear(&stream->pipe);
        stream->state = PROXY_DONE;
    } else if (has_unsent(target)) {
        stream->retry_us = tool_now_us() + UNSENT_RETRY_MS * 1000;
    } else {
        proxy_connection_close(stream->connection, end != PROXY_END_CUT_FIN, end == PROXY_END_RESET);
    }
}

/* Before the node is connected. While requests are held, do not connect. */
static void approach_node(struct proxy_stream *requests) {
    struct proxy_connection *connection = requests->connection;
    if (proxy_pipe_is_empty(&requests->pipe) && requests->pipe.end == PROXY_END_RESET) {
        /* The client left without sending anything. */
        proxy_connection_close(connection, true, true);
    } else if (connection->node == PROXY_NODE_UNOPENED && !requests->pipe.lane->rule.hold && !requests->pipe.frozen) {
        open_node(connection);
    }
}

/* Writes what is due. Returns true if bytes left and another try may write more. */
static bool give(struct proxy_stream *stream) {
    struct proxy_socket *to = target_of(stream);
    bool gave = false, once = stream->pipe.lane->rule.trickle;
    const char *bytes;
    size_t size;
    stream->retry_us = 0;
    if (stream->state != PROXY_PASSING || stream->connection->closed) {
        return false;
    }
    if (way_of(stream) == PROXY_REQUESTS && stream->connection->node != PROXY_NODE_OPEN) {
        approach_node(stream);
        return false;
    }
    if (proxy_pipe_next_us(&stream->pipe) == PROXY_PIPE_NEVER_US) {
        return false;
    }
    int64_t now_us = tool_now_us();
    while (to->writable && !(gave && once) && (size = proxy_pipe_due(&stream->pipe, now_us, &bytes)) > 0) {
        ssize_t sent = send(to->source.fd, bytes, size, MSG_NOSIGNAL);
        if (sent >= 0) {
            proxy_pipe_left(&stream->pipe, (size_t)sent);
            gave = true;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            to->writable = false;
        } else if (errno != EINTR) {
            lose_target(stream);
            return false;
        }
    }
    enum proxy_end end = proxy_pipe_due_end(&stream->pipe, now_us);
    if (end != PROXY_END_NONE) {
        pass_end(stream, end);
    }
    return gave && !once;
}

/* When to look again if no event comes first. */
static int64_t next_us(struct proxy_stream *stream) {
    bool blocked = !target_of(stream)->writable && !proxy_pipe_is_empty(&stream->pipe);
    bool opening = way_of(stream) == PROXY_REQUESTS && stream->connection->node != PROXY_NODE_OPEN;
    if (stream->retry_us != 0) {
        return stream->retry_us;
    }
    return stream->state != PROXY_PASSING || blocked || opening ? PROXY_PIPE_NEVER_US
                                                                : proxy_pipe_next_us(&stream->pipe);
}

void proxy_stream_pump(struct proxy_stream *stream) {
    struct proxy_connection *connection = stream->connection;
    const struct proxy_stream *requests = &connection->streams[PROXY_REQUESTS];
    const struct proxy_stream *replies = &connection->streams[PROXY_REPLIES];
    bool more = !connection->closed;
    for (int i = 0; i < ROUNDS_MAX && more; i++) {
        bool took = take(stream);
        bool gave = !connection->closed && give(stream);
        /* Writing may have made room. */
        more = !connection->closed && (took || (gave && source_of(stream)->readable));
    }
    if (connection->closed) {
        return;
    }
    if (requests->state == PROXY_DONE &&
        (replies->state == PROXY_DONE || (replies->state == PROXY_DROPPING && replies->source_ended))) {
        proxy_connection_close(connection, false, false);
        return;
    }
    wake_at(stream, more ? tool_now_us() : next_us(stream));
}

void proxy_connection_dismiss(struct proxy_connection *connection) {
    struct proxy_stream *replies = &connection->streams[PROXY_REPLIES];
    /* Fails only if the client is gone. */
    (void)shutdown(connection->sockets[0].source.fd, SHUT_WR);
    proxy_pipe_clear(&replies->pipe);
    replies->state = PROXY_DROPPING;
    proxy_stream_pump(replies);
}

static void on_socket(struct proxy_source *source, uint32_t events) {
    struct proxy_socket *socket = (struct proxy_socket *)source;
    struct proxy_connection *connection = socket->connection;
    struct proxy_stream *from = &connection->streams[socket == &connection->sockets[1]], *to = opposite(from);
    if (connection->closed) {
        return;
    }
    socket->readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    socket->writable |= (events & (EPOLLOUT | EPOLLERR)) != 0;
    socket->hung_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (from == &connection->streams[PROXY_REPLIES] && connection->node == PROXY_NODE_CONNECTING) {
        connected(connection);
    } else if ((events & EPOLLERR) != 0 && from->source_ended && to->state != PROXY_DROPPING) {
        lose_target(to); /* a RST after the end */
    }
    proxy_stream_pump(from);
    if ((events & (EPOLLOUT | EPOLLERR)) != 0) {
        proxy_stream_pump(to);
    }
}

void proxy_connection_open(struct proxy_link *link, int client) {
    static const int on = 1;
    struct proxy_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        proxy_complain(link, "keep a connection, so it is reset");
        proxy_socket_close(client, true);
        return;
    }
    connection->link = link;
    connection->next = link->connections;
    connection->self = &link->connections;
    if (connection->next != NULL) {
        connection->next->self = &connection->next;
    }
    link->connections = connection;
    link->connection_count++;
    for (int i = 0; i < 2; i++) {
        connection->sockets[i] =
            (struct proxy_socket){.source = {i == 0 ? client : -1, on_socket}, .connection = connection};
        connection->streams[i].connection = connection;
        connection->streams[i].wake_us = PROXY_PIPE_NEVER_US;
        connection->streams[i].pipe.lane = &link->lanes[i];
    }
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!proxy_watch(link->proxy, &connection->sockets[0].source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
        proxy_complain(link, "watch a connection, so it is reset");
        proxy_connection_close(connection, true, true);
        return;
    }
    proxy_stream_pump(&connection->streams[PROXY_REQUESTS]);
}
