/* A connection through the delaying proxy: two sockets, and a queue each way. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "delay.h"

#define ROUNDS_MAX 16 /* of reading and writing one way, before others have their turn */

/* A delay of 0 needs no clock: 0 is always due. */
static int64_t due_ns(const struct delay_way *way) {
    int64_t delay_ns = way->connection->link->delay_ns;
    return delay_ns == 0 ? 0 : contender_now_ns() + delay_ns;
}

static struct delay_way *opposite(struct delay_way *way) {
    return &way->connection->ways[way == &way->connection->ways[0]];
}

/* with_reset: an end whose peer did not say FIN gets to know that something went wrong. */
static void close_connection(struct delay_proxy *proxy, struct delay_connection *connection, bool with_reset) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (connection->closed) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (with_reset) {
            (void)setsockopt(connection->ends[i].source.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        }
        (void)close(connection->ends[i].source.fd);
        delay_agenda_at(&proxy->agenda, &connection->ways[i], DELAY_NEVER_NS);
    }
    connection->closed = true;
    connection->next_closed = proxy->closed;
    proxy->closed = connection;
}

/* The end that this way goes to is broken: what waits is lost, and the other side hears of it after its delay. */
static void broken(struct delay_proxy *proxy, struct delay_way *way) {
    struct delay_way *back = opposite(way);
    delay_queue_clear(&way->queue);
    delay_queue_ends(&back->queue, DELAY_END_RESET, due_ns(back));
    delay_agenda_at(&proxy->agenda, back, delay_queue_next_ns(&back->queue));
    way->to->writable = false;
}

/* Reads once. Returns false where there is nothing to read, or no room. */
static bool take(struct delay_way *way) {
    struct delay_socket *from = way->from;
    size_t size;
    char *room;
    if (!from->readable || way->queue.end != DELAY_END_NONE) {
        return false;
    }
    room = delay_queue_room(&way->queue, &size);
    if (room == NULL) {
        return false;
    }
    ssize_t got = recv(from->source.fd, room, size, 0);
    if (got > 0) {
        delay_queue_came(&way->queue, (size_t)got, due_ns(way));
        /* Less than was asked for is all there is, but for a FIN; more makes another event. */
        from->readable = (size_t)got == size || from->hung_up;
        return true;
    }
    if (got < 0 && errno == EINTR) {
        return true;
    }
    from->readable = false;
    if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
        delay_queue_ends(&way->queue, got == 0 ? DELAY_END_FIN : DELAY_END_RESET, due_ns(way));
    }
    return false;
}

static void pass_end(struct delay_proxy *proxy, struct delay_way *way, enum delay_end end) {
    struct delay_connection *connection = way->connection;
    if (end == DELAY_END_RESET) {
        close_connection(proxy, connection, true);
    } else if (end == DELAY_END_FIN) {
        (void)shutdown(way->to->source.fd, SHUT_WR); /* fails only where the end is gone, which its reader sees */
        if (++connection->finished == 2) {
            close_connection(proxy, connection, false);
        }
    }
}

/* Writes what is due. Returns whether anything left. */
static bool give(struct delay_proxy *proxy, struct delay_way *way) {
    int64_t next_ns = delay_queue_next_ns(&way->queue);
    bool left = false;
    const char *bytes;
    size_t size;
    if (next_ns == DELAY_NEVER_NS || way->connection->connecting) {
        return false;
    }
    int64_t now = next_ns == 0 ? 0 : contender_now_ns();
    while (way->to->writable && (size = delay_queue_due(&way->queue, now, &bytes)) > 0) {
        ssize_t sent = send(way->to->source.fd, bytes, size, MSG_NOSIGNAL);
        if (sent > 0) {
            delay_queue_left(&way->queue, (size_t)sent);
            left = true;
        } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            way->to->writable = false;
        } else if (sent < 0 && errno != EINTR) {
            broken(proxy, way);
            return false;
        }
    }
    pass_end(proxy, way, delay_queue_take_end(&way->queue, now));
    return left;
}

void delay_connection_pump(struct delay_proxy *proxy, struct delay_way *way) {
    struct delay_connection *connection = way->connection;
    bool more = true;
    for (int i = 0; i < ROUNDS_MAX && more && !connection->closed; i++) {
        bool took = take(way), gave = give(proxy, way);
        more = took || (gave && way->from->readable); /* there may be room now */
    }
    if (connection->closed) {
        return;
    }
    if (connection->connecting) {
        delay_agenda_at(&proxy->agenda, way, DELAY_NEVER_NS);
    } else {
        delay_agenda_at(&proxy->agenda, way,
                        way->to->writable ? delay_queue_next_ns(&way->queue) : delay_queue_end_ns(&way->queue));
    }
    if (more) {
        delay_agenda_again(&proxy->agenda, way);
    }
}

void delay_connection_open(struct delay_proxy *proxy, const struct delay_link *link, int client) {
    static const int on = 1;
    struct delay_connection *connection = calloc(1, sizeof *connection);
    int target = socket(link->target.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection == NULL || target < 0) {
        delay_fatal("no connection to a target: %s", strerror(errno));
    }
    connection->link = link;
    connection->connecting = true;
    for (int i = 0; i < 2; i++) {
        connection->ends[i] =
            (struct delay_socket){.source = {DELAY_SOURCE_END, i == 0 ? client : target}, .connection = connection};
        connection->ends[i].writable = i == 0;
        connection->ways[i] =
            (struct delay_way){.connection = connection, .from = &connection->ends[i], .to = &connection->ends[1 - i]};
        (void)setsockopt(connection->ends[i].source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if (connect(target, (const struct sockaddr *)&link->target, link->target_size) != 0 && errno != EINPROGRESS &&
        errno != EINTR) {
        close_connection(proxy, connection, true);
        return;
    }
    for (int i = 0; i < 2; i++) {
        delay_watch(proxy, &connection->ends[i].source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    }
}

/* The target's end became writable, or failed. False: it is closed. */
static bool connected(struct delay_proxy *proxy, struct delay_connection *connection) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(connection->ends[1].source.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        close_connection(proxy, connection, true);
        return false;
    }
    connection->connecting = false;
    return true;
}

void delay_connection_event(struct delay_proxy *proxy, struct delay_socket *end, uint32_t events) {
    struct delay_connection *connection = end->connection;
    struct delay_way *from = &connection->ways[end == &connection->ends[1]], *to = opposite(from);
    if (connection->closed ||
        (connection->connecting && end == &connection->ends[1] && !connected(proxy, connection))) {
        return;
    }
    end->readable = end->readable || (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    end->writable = end->writable || (events & EPOLLOUT) != 0;
    end->hung_up = end->hung_up || (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if ((events & EPOLLERR) != 0 && from->queue.end != DELAY_END_NONE) {
        delay_queue_ends(&from->queue, DELAY_END_RESET, due_ns(from)); /* nobody reads here any more to find out */
    }
    delay_connection_pump(proxy, from);
    if ((events & EPOLLOUT) != 0 && !connection->closed) {
        delay_connection_pump(proxy, to);
    }
}

/* Those that had more to do than fits into one turn. */
static void go_on(struct delay_proxy *proxy) {
    struct delay_way *way = proxy->agenda.again_first;
    proxy->agenda.again_first = NULL;
    proxy->agenda.again_last = &proxy->agenda.again_first;
    for (struct delay_way *next; way != NULL; way = next) {
        next = way->next_again;
        way->again = false;
        if (!way->connection->closed) {
            delay_connection_pump(proxy, way);
        }
    }
}

/* No event points to them now, and no list. */
static void free_closed(struct delay_proxy *proxy) {
    struct delay_connection **place = &proxy->closed;
    while (*place != NULL) {
        struct delay_connection *connection = *place;
        if (connection->ways[0].again || connection->ways[1].again) {
            place = &connection->next_closed;
            continue;
        }
        *place = connection->next_closed;
        delay_queue_clear(&connection->ways[0].queue);
        delay_queue_clear(&connection->ways[1].queue);
        free(connection);
    }
}

void delay_connection_turn(struct delay_proxy *proxy) {
    go_on(proxy);
    free_closed(proxy);
}
