/* A connection through the link proxy: what is read goes on at once, or into the pipe; ends follow in order. */
#include "proxy_connection.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* How often it is asked whether the kernel has sent the bytes before a RST. */
enum { UNSENT_RETRY_MS = 20 };

/* These return whether the connection still stands: false, it is freed. */
static bool pump(struct chaos_way *way);

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void chaos_proxy_complain(struct chaos_proxy_link *link, const char *what) {
    if (!link->shared->told) {
        link->shared->told = true;
        fprintf(
            stderr,
            "redlock-chaos: link proxy: cannot %s (client %zu, node %zu): %s. It goes on trying; if this is about open "
            "files, raise `ulimit -n`. This is said once.\n",
            what, link->client + 1, link->node + 1, strerror(errno));
    }
}

void chaos_socket_reset(int fd) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(fd);
}

static struct chaos_way *opposite(struct chaos_way *way) {
    return &way->connection->ways[way == &way->connection->ways[CHAOS_REQUESTS]];
}

static bool is_requests(const struct chaos_way *way) {
    return way == &way->connection->ways[CHAOS_REQUESTS];
}

static int source_of(const struct chaos_way *way) {
    return way->connection->fds[is_requests(way) ? CHAOS_SIDE_CLIENT : CHAOS_SIDE_NODE];
}

static int target_of(const struct chaos_way *way) {
    return way->connection->fds[is_requests(way) ? CHAOS_SIDE_NODE : CHAOS_SIDE_CLIENT];
}

void chaos_connection_close(struct chaos_connection *connection, bool reset) {
    struct chaos_proxy_link *link = connection->link;
    struct ev_loop *loop = link->shared->loop;
    for (int i = 0; i < 2; i++) {
        struct chaos_way *way = &connection->ways[i];
        ev_io_stop(loop, &way->reader);
        ev_io_stop(loop, &way->writer);
        ev_timer_stop(loop, &way->wake);
        chaos_pipe_clear(&way->pipe);
    }
    for (int i = 0; i < 2; i++) {
        if (connection->fds[i] >= 0 && reset) {
            chaos_socket_reset(connection->fds[i]);
        } else if (connection->fds[i] >= 0) {
            (void)close(connection->fds[i]);
        }
    }
    *connection->self = connection->next;
    if (connection->next != NULL) {
        connection->next->self = connection->self;
    }
    free(connection);
    /* A listener rests at the most connections. */
    if (link->connection_count-- == CHAOS_LINK_CONNECTIONS_MAX) {
        ev_io_start(loop, &link->listener);
    }
}

static void wake_at(struct chaos_way *way, int64_t at_us) {
    struct ev_loop *loop = way->connection->link->shared->loop;
    if (ev_is_active(&way->wake) && way->wake_us == at_us) {
        return;
    }
    ev_timer_stop(loop, &way->wake);
    if (at_us != CHAOS_PIPE_NEVER_US) {
        int64_t in_us = at_us - now_us();
        ev_timer_set(&way->wake, in_us > 0 ? (double)in_us / 1e6 : 0., 0.);
        ev_timer_start(loop, &way->wake);
        way->wake_us = at_us;
    }
}

/* Reads go on as long as there is room for what comes. */
static void set_reader(struct chaos_way *way) {
    struct ev_loop *loop = way->connection->link->shared->loop;
    bool open = is_requests(way) || way->connection->node == CHAOS_NODE_OPEN;
    if (open && !way->source_ended && (way->state == CHAOS_WAY_DROPPING || !chaos_pipe_is_full(&way->pipe))) {
        ev_io_start(loop, &way->reader);
    } else {
        ev_io_stop(loop, &way->reader);
    }
}

static void end_source(struct chaos_way *way, enum chaos_pipe_end end) {
    way->source_ended = true;
    set_reader(way);
    if (way->state == CHAOS_WAY_PASSING) {
        way->state = CHAOS_WAY_ENDING;
        chaos_pipe_ends(&way->pipe, end, now_us());
    }
}

/* Nobody takes what goes this way any more. False: nobody is left on either side. */
static bool lose_target(struct chaos_way *way) {
    struct ev_loop *loop = way->connection->link->shared->loop;
    struct chaos_way *back = opposite(way);
    chaos_pipe_clear(&way->pipe);
    ev_io_stop(loop, &way->writer);
    ev_timer_stop(loop, &way->wake);
    way->state = CHAOS_WAY_DROPPING;
    set_reader(way);
    back->source_lost = true;
    if (back->state == CHAOS_WAY_DROPPING) {
        chaos_connection_close(way->connection, true);
        return false;
    }
    if (back->state != CHAOS_WAY_PASSING) {
        back->state = CHAOS_WAY_ENDING;
        chaos_pipe_ends(&back->pipe, CHAOS_END_RESET, now_us());
    }
    return pump(back);
}

/* The node refused, or cannot be asked: as if a RST had come from it. */
static bool refuse(struct chaos_connection *connection) {
    struct chaos_way *replies = &connection->ways[CHAOS_REPLIES];
    end_source(replies, CHAOS_END_RESET);
    return lose_target(&connection->ways[CHAOS_REQUESTS]);
}

static bool open_node(struct chaos_connection *connection) {
    static const int on = 1;
    struct chaos_proxy_link *link = connection->link;
    struct chaos_way *requests = &connection->ways[CHAOS_REQUESTS];
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(link->upstream), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        chaos_proxy_complain(link, "open a socket for a node");
        wake_at(requests, now_us() + CHAOS_RETRY_MS * 1000);
        return true;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
        if (errno != ECONNREFUSED) {
            chaos_proxy_complain(link, "connect to a node");
        }
        (void)close(fd);
        return refuse(connection);
    }
    connection->fds[CHAOS_SIDE_NODE] = fd;
    connection->node = CHAOS_NODE_CONNECTING;
    ev_io_set(&requests->writer, fd, EV_WRITE);
    ev_io_set(&connection->ways[CHAOS_REPLIES].reader, fd, EV_READ);
    ev_io_start(link->shared->loop, &requests->writer);
    return true;
}

/* Requests before the node is connected: while they are held, it is not asked. */
static bool approach_node(struct chaos_way *requests) {
    struct chaos_connection *connection = requests->connection;
    if (chaos_pipe_is_empty(&requests->pipe) && requests->pipe.end == CHAOS_END_RESET) {
        chaos_connection_close(connection, true); /* the client has gone, and left nothing to say */
        return false;
    }
    set_reader(requests);
    if (connection->node == CHAOS_NODE_CONNECTING || requests->pipe.lane->hold) {
        return true;
    }
    return open_node(connection);
}

/* Where nobody listens, the kernel may give a socket the very port that it connects to: then it is connected to itself. */
static bool is_connected_to_itself(int fd, uint16_t port) {
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    return getsockname(fd, (struct sockaddr *)&address, &size) == 0 && ntohs(address.sin_port) == port;
}

/* The node's socket became writable for the first time, or failed. */
static bool connected(struct chaos_connection *connection) {
    int fd = connection->fds[CHAOS_SIDE_NODE], error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0 ||
        is_connected_to_itself(fd, connection->link->upstream)) {
        return refuse(connection);
    }
    connection->node = CHAOS_NODE_OPEN;
    set_reader(&connection->ways[CHAOS_REPLIES]);
    return true;
}

/* A RST makes the kernel forget what it has not sent yet. */
static bool has_unsent(int fd) {
    int size = 0;
    return ioctl(fd, SIOCOUTQNSD, &size) == 0 && size > 0;
}

static bool pass_end(struct chaos_way *way, enum chaos_pipe_end end) {
    struct chaos_connection *connection = way->connection;
    if (end == CHAOS_END_RESET) {
        if (has_unsent(target_of(way))) {
            wake_at(way, now_us() + UNSENT_RETRY_MS * 1000);
            return true;
        }
        chaos_connection_close(connection, true);
        return false;
    }
    (void)shutdown(target_of(way),
                   SHUT_WR); /* fails only where the target is lost, which writing or reading finds out */
    chaos_pipe_clear(&way->pipe);
    way->state = CHAOS_WAY_DONE;
    if (opposite(way)->state == CHAOS_WAY_DONE) {
        chaos_connection_close(connection, false);
        return false;
    }
    return true;
}

/* Passes on what is due, and sees to it that the rest will be. */
static bool pump(struct chaos_way *way) {
    struct ev_loop *loop = way->connection->link->shared->loop;
    if (way->state == CHAOS_WAY_DROPPING || way->state == CHAOS_WAY_DONE) {
        return true;
    }
    if (is_requests(way) && way->connection->node != CHAOS_NODE_OPEN) {
        return approach_node(way);
    }
    int64_t now = now_us();
    const char *bytes;
    for (size_t size; (size = chaos_pipe_due(&way->pipe, now, &bytes)) > 0;) {
        ssize_t sent = send(target_of(way), bytes, size, MSG_NOSIGNAL);
        if (sent >= 0) {
            chaos_pipe_left(&way->pipe, (size_t)sent);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            ev_timer_stop(loop, &way->wake);
            ev_io_start(loop, &way->writer);
            set_reader(way);
            return true;
        } else if (errno != EINTR) {
            return lose_target(way);
        }
    }
    ev_io_stop(loop, &way->writer);
    enum chaos_pipe_end end = chaos_pipe_due_end(&way->pipe, now);
    if (end != CHAOS_END_NONE) {
        return pass_end(way, end);
    }
    wake_at(way, chaos_pipe_next_us(&way->pipe));
    set_reader(way);
    return true;
}

/* Bytes have come. Where nothing is in their way, they go on without a copy. */
static void take(struct chaos_way *way, const char *bytes, size_t size) {
    struct chaos_connection *connection = way->connection;
    size_t gone = 0;
    if (way->state == CHAOS_WAY_DROPPING) {
        return;
    }
    assert(way->state == CHAOS_WAY_PASSING);
    if (chaos_lane_is_clear(way->pipe.lane) && chaos_pipe_is_empty(&way->pipe) && connection->node == CHAOS_NODE_OPEN) {
        ssize_t sent = send(target_of(way), bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            (void)lose_target(way);
            return;
        }
        gone = sent < 0 ? 0 : (size_t)sent;
        if (gone == size) {
            return;
        }
    }
    if (!chaos_pipe_put(&way->pipe, bytes + gone, size - gone, now_us())) {
        chaos_proxy_complain(connection->link, "keep bytes that wait, so the connection is reset");
        chaos_connection_close(connection, true);
        return;
    }
    (void)pump(way);
}

static void on_readable(struct ev_loop *loop, ev_io *reader, int events) {
    struct chaos_way *way = reader->data;
    char *buffer = way->connection->link->shared->buffer;
    (void)loop;
    (void)events;
    ssize_t got = recv(source_of(way), buffer, CHAOS_READ_SIZE, 0);
    if (got > 0) {
        take(way, buffer, (size_t)got);
        return;
    }
    bool broke = got < 0;
    if (broke && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    end_source(way, broke || way->source_lost ? CHAOS_END_RESET : CHAOS_END_FIN);
    if (broke) {
        (void)lose_target(opposite(way)); /* which pumps this way */
    } else {
        (void)pump(way);
    }
}

static void on_writable(struct ev_loop *loop, ev_io *writer, int events) {
    struct chaos_way *way = writer->data;
    (void)events;
    if (is_requests(way) && way->connection->node == CHAOS_NODE_CONNECTING) {
        ev_io_stop(loop, writer);
        if (!connected(way->connection)) {
            return;
        }
    }
    (void)pump(way);
}

static void on_wake(struct ev_loop *loop, ev_timer *wake, int events) {
    (void)loop;
    (void)events;
    (void)pump(wake->data);
}

void chaos_connection_open(struct chaos_proxy_link *link, int client) {
    static const int on = 1;
    struct chaos_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        chaos_proxy_complain(link, "keep a connection, so it is reset");
        chaos_socket_reset(client);
        return;
    }
    connection->link = link;
    connection->fds[CHAOS_SIDE_CLIENT] = client;
    connection->fds[CHAOS_SIDE_NODE] = -1;
    connection->next = link->connections;
    connection->self = &link->connections;
    if (connection->next != NULL) {
        connection->next->self = &connection->next;
    }
    link->connections = connection;
    link->connection_count++;
    for (int i = 0; i < 2; i++) {
        struct chaos_way *way = &connection->ways[i];
        way->connection = connection;
        way->pipe.lane = &link->lanes[i];
        ev_io_init(&way->reader, on_readable, connection->fds[i], EV_READ);
        ev_io_init(&way->writer, on_writable, connection->fds[1 - i], EV_WRITE);
        ev_timer_init(&way->wake, on_wake, 0., 0.);
        way->reader.data = way->writer.data = way->wake.data = way;
    }
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)pump(&connection->ways[CHAOS_REQUESTS]);
}

void chaos_connection_rule_changed(struct chaos_connection *connection) {
    if (pump(&connection->ways[CHAOS_REQUESTS])) {
        (void)pump(&connection->ways[CHAOS_REPLIES]);
    }
}
