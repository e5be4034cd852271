/* The floor's nodes: the least that a program can do with its sockets. */
#include "floor_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for twice the requests that the workers can leave unread at a slow node: two each. */
#define OUT_SIZE  (4 * CONTENDER_WORKERS_MAX * sizeof(struct exchange_request))
#define FIFO_SIZE 65536U /* a power of two */
#define IN_SIZE   65536

void floor_fail(struct floor *floor, const char *what) {
    if (floor->error && !*floor->error) {
        (void)snprintf(floor->error, CONTENDER_ERROR_SIZE, "%s: %s", what, errno ? strerror(errno) : "closed");
    }
    floor->exchange.ending = true;
    floor->exchange.outstanding = 0;
}

/* A node that closed the connection no longer votes. */
static void drop_node(struct floor *floor, struct node *node) {
    unsigned left = 0;
    (void)close(node->fd);
    node->fd = -1;
    node->fifo_begin = node->fifo_end;
    node->out_begin = node->out_end = 0;
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        left += floor->nodes[i].fd >= 0;
    }
    if (left < floor->exchange.quorum) {
        floor_fail(floor, "too few nodes are left");
    }
}

static ssize_t put(struct node *node, const char *bytes, size_t size) {
    return node->tls ? floor_tls_send(node->tls, bytes, size) : send(node->fd, bytes, size, MSG_NOSIGNAL);
}

static ssize_t get(struct node *node, char *bytes, size_t size) {
    return node->tls ? floor_tls_recv(node->tls, bytes, size) : recv(node->fd, bytes, size, 0);
}

static void queue(void *data, const struct exchange_request *request, struct exchange_tag tag) {
    struct floor *floor = data;
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        struct node *node = &floor->nodes[i];
        if (node->fd < 0) {
            continue;
        }
        if (node->out_end + request->size > OUT_SIZE || node->fifo_end - node->fifo_begin == FIFO_SIZE) {
            errno = ENOBUFS;
            floor_fail(floor, "a node does not keep up");
            return;
        }
        memcpy(node->out + node->out_end, request->bytes, request->size);
        node->out_end += request->size;
        node->fifo[node->fifo_end++ % FIFO_SIZE] = tag;
    }
}

static void watch(struct floor *floor, unsigned index, bool write) {
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.u32 = index};
    if (epoll_ctl(floor->epoll, EPOLL_CTL_MOD, floor->nodes[index].fd, &event) != 0) {
        floor_fail(floor, "epoll_ctl");
    }
    floor->nodes[index].waits_to_write = write;
}

static void flush_node(struct floor *floor, unsigned index) {
    struct node *node = &floor->nodes[index];
    ssize_t written = put(node, node->out + node->out_begin, node->out_end - node->out_begin);
    if (written < 0 && errno != EAGAIN) {
        drop_node(floor, node);
        return;
    }
    node->out_begin += written > 0 ? (size_t)written : 0;
    bool left = node->out_begin < node->out_end;
    if (!left) {
        node->out_begin = node->out_end = 0;
    }
    if (left != node->waits_to_write) {
        watch(floor, index, left);
    }
}

/* Every reply in this exchange is one line: +OK, $-1, :1, or an error. */
static void take(struct floor *floor, struct node *node) {
    ssize_t got = get(node, node->in + node->in_size, IN_SIZE - node->in_size);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) {
            drop_node(floor, node);
        }
        return;
    }
    char *at = node->in, *end = node->in + node->in_size + got, *newline;
    while (node->fd >= 0 && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        struct exchange_tag tag = node->fifo[node->fifo_begin++ % FIFO_SIZE];
        exchange_vote(&floor->exchange, tag, at[0] == '+' || (at[0] == ':' && at[1] == '1'));
        at = newline + 1;
    }
    node->in_size = (size_t)(end - at);
    memmove(node->in, at, node->in_size);
}

void floor_flush(struct floor *floor) {
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        const struct node *node = &floor->nodes[i];
        if (node->fd >= 0 && node->out_begin < node->out_end) {
            flush_node(floor, i);
        }
    }
}

static void read_node(struct floor *floor, struct node *node) {
    do {
        take(floor, node);
    } while (node->tls && node->fd >= 0 && floor_tls_has_more(node->tls));
}

bool floor_wait(struct floor *floor, int timeout_ms) {
    struct epoll_event events[CONTENDER_NODES_MAX + 1];
    int count = epoll_wait(floor->epoll, events, CONTENDER_NODES_MAX + 1, timeout_ms);
    if (count <= 0) {
        return count < 0 && errno == EINTR;
    }
    for (int i = 0; i < count; i++) {
        const uint32_t index = events[i].data.u32;
        if (index == CONTENDER_NODES_MAX) {
            uint64_t wakes;
            (void)!read(floor->wake_up, &wakes, sizeof wakes);
        } else if (floor->nodes[index].fd >= 0 && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            read_node(floor, &floor->nodes[index]);
        }
    }
    return true;
}

bool floor_is_idle(const struct floor *floor) {
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        if (floor->nodes[i].fifo_begin != floor->nodes[i].fifo_end) {
            return false;
        }
    }
    return true;
}

void floor_disconnect(struct floor *floor) {
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        struct node *node = &floor->nodes[i];
        if (node->fd >= 0) {
            (void)close(node->fd);
        }
        floor_tls_close(node->tls);
        free(node->out);
        free(node->fifo);
        free(node->in);
    }
    floor->exchange.node_count = 0;
    floor->sealed_cycles = 0;
}

/* Loads the script and checks its SHA1. The socket still blocks here. */
static bool load_script(struct node *node) {
    char request[512], reply[47];
    size_t had = 0;
    ssize_t got = 1;
    int size = snprintf(request, sizeof request, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                        strlen(exchange_release_script), exchange_release_script);
    errno = 0;
    if (size <= 0 || (size_t)size >= sizeof request || put(node, request, (size_t)size) != size) {
        return false;
    }
    while (had < sizeof reply && got > 0) {
        got = get(node, reply + had, sizeof reply - had);
        had += got > 0 ? (size_t)got : 0;
    }
    return had == sizeof reply && exchange_sha1_matches(reply + 5, 40);
}

static bool connect_node(struct floor *floor, unsigned index, const char *at) {
    struct node *node = &floor->nodes[index];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    const struct timeval patience = {.tv_sec = 10};
    memset(node, 0, sizeof *node);
    node->fd = contender_open_socket(at);
    if (node->fd < 0) {
        return false;
    }
    (void)setsockopt(node->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    node->out = malloc(OUT_SIZE);
    node->fifo = malloc(FIFO_SIZE * sizeof *node->fifo);
    node->in = malloc(IN_SIZE);
    floor->exchange.node_count = index + 1;
    if (floor->tls && (node->tls = floor_tls_open(floor->tls, floor->ca_file, node->fd, at)) == NULL) {
        return false;
    }
    /* A record may come in parts, so reads with TLS may not block from here on. */
    return node->out && node->fifo && node->in && load_script(node) &&
           (!node->tls || fcntl(node->fd, F_SETFL, O_NONBLOCK) == 0) &&
           epoll_ctl(floor->epoll, EPOLL_CTL_ADD, node->fd, &event) == 0;
}

void floor_connect(void *data, const struct contender_nodes *nodes, char error[CONTENDER_ERROR_SIZE]) {
    struct floor *floor = data;
    floor_disconnect(floor);
    floor->exchange.quorum = (unsigned)nodes->count / 2 + 1;
    for (unsigned i = 0; i < nodes->count; i++) {
        if (!connect_node(floor, i, nodes->at[i])) {
            (void)snprintf(error, CONTENDER_ERROR_SIZE, "%s: %s", nodes->at[i], strerror(errno));
            floor_disconnect(floor);
            return;
        }
    }
}

void floor_begin(struct floor *floor) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = CONTENDER_NODES_MAX};
    floor->exchange.send = queue;
    floor->exchange.data = floor;
    floor->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (floor->epoll < 0 ||
        (floor->wake_up >= 0 && epoll_ctl(floor->epoll, EPOLL_CTL_ADD, floor->wake_up, &event) != 0)) {
        contender_fatal("epoll: %s", strerror(errno));
    }
    exchange_make(&floor->exchange);
}

void floor_end(struct floor *floor) {
    floor_disconnect(floor);
    exchange_free(&floor->exchange);
    (void)close(floor->epoll);
}
