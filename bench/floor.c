/* The floor: raw epoll and prepared bytes. It does the least that a lock on N nodes needs, so no
 * client can be faster. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contender.h"
#include "exchange.h"

/* Room for twice the requests that the workers can leave unread at a slow node: two each. */
#define OUT_SIZE  (4 * CONTENDER_WORKERS_MAX * sizeof(struct exchange_request))
#define FIFO_SIZE 65536U /* a power of two */
#define IN_SIZE   65536
#define ANSWER_MS 5000 /* without any answer for this long, give up */
#define LATE_MS   100

struct node {
    int fd;
    bool waits_to_write;
    char *out;
    size_t out_begin, out_end;
    struct exchange_tag *fifo; /* the requests whose replies come next */
    uint32_t fifo_begin, fifo_end;
    char *in;
    size_t in_size; /* bytes of an incomplete reply */
};

struct floor {
    struct exchange exchange;
    int epoll;
    struct node nodes[CONTENDER_NODES_MAX];
    char *error; /* of the current run */
};

static void fail(struct floor *floor, const char *what) {
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
        fail(floor, "too few nodes are left");
    }
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
            fail(floor, "a node does not keep up");
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
        fail(floor, "epoll_ctl");
    }
    floor->nodes[index].waits_to_write = write;
}

static void flush(struct floor *floor, unsigned index) {
    struct node *node = &floor->nodes[index];
    ssize_t written = send(node->fd, node->out + node->out_begin, node->out_end - node->out_begin, MSG_NOSIGNAL);
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
    ssize_t got = recv(node->fd, node->in + node->in_size, IN_SIZE - node->in_size, 0);
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

/* Returns false if nothing came in time. */
static bool turn(struct floor *floor, int timeout_ms) {
    struct epoll_event events[CONTENDER_NODES_MAX];
    int count = epoll_wait(floor->epoll, events, CONTENDER_NODES_MAX, timeout_ms);
    if (count <= 0) {
        return count < 0 && errno == EINTR;
    }
    for (int i = 0; i < count; i++) {
        if (floor->nodes[events[i].data.u32].fd >= 0 && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            take(floor, &floor->nodes[events[i].data.u32]);
        }
    }
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        struct node *node = &floor->nodes[i];
        if (node->fd >= 0 && node->out_begin < node->out_end) {
            flush(floor, i);
        }
    }
    return true;
}

static bool idle(const struct floor *floor) {
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        if (floor->nodes[i].fifo_begin != floor->nodes[i].fifo_end) {
            return false;
        }
    }
    return true;
}

static void cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    struct floor *floor = data;
    int64_t began_ns = contender_now_ns(), now_ns = began_ns;
    floor->error = error;
    if (floor->exchange.node_count == 0) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
        return;
    }
    exchange_begin(&floor->exchange, cycles);
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        if (floor->nodes[i].fd >= 0) {
            flush(floor, i);
        }
    }
    while (floor->exchange.outstanding > 0) {
        if (!turn(floor, ANSWER_MS)) {
            fail(floor, "epoll_wait");
        }
        now_ns = contender_now_ns();
        floor->exchange.ending = floor->exchange.ending || now_ns - began_ns >= cycles->duration_ms * 1000000;
    }
    cycles->took_ns = now_ns - began_ns;
    while (!*error && !idle(floor) && turn(floor, LATE_MS)) {
        /* count late votes in this run, except those of a node that hangs */
    }
}

static void disconnect(struct floor *floor) {
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        struct node *node = &floor->nodes[i];
        if (node->fd >= 0) {
            (void)close(node->fd);
        }
        free(node->out);
        free(node->fifo);
        free(node->in);
    }
    floor->exchange.node_count = 0;
}

/* Loads the script and checks its SHA1. The socket still blocks here. */
static bool load_script(int fd) {
    char request[512], reply[64];
    int size = snprintf(request, sizeof request, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n",
                        strlen(exchange_release_script), exchange_release_script);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    errno = 0;
    return size > 0 && (size_t)size < sizeof request && send(fd, request, (size_t)size, MSG_NOSIGNAL) == size &&
           poll(&ready, 1, 10000) == 1 && recv(fd, reply, 47, MSG_WAITALL) == 47 &&
           exchange_sha1_matches(reply + 5, 40);
}

static bool connect_node(struct floor *floor, unsigned index, const char *at) {
    struct node *node = &floor->nodes[index];
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
    memset(node, 0, sizeof *node);
    node->fd = contender_open_socket(at);
    if (node->fd < 0) {
        return false;
    }
    node->out = malloc(OUT_SIZE);
    node->fifo = malloc(FIFO_SIZE * sizeof *node->fifo);
    node->in = malloc(IN_SIZE);
    floor->exchange.node_count = index + 1;
    return node->out && node->fifo && node->in && load_script(node->fd) &&
           epoll_ctl(floor->epoll, EPOLL_CTL_ADD, node->fd, &event) == 0;
}

static void connect_nodes(void *data, const struct contender_nodes *nodes, char error[CONTENDER_ERROR_SIZE]) {
    struct floor *floor = data;
    disconnect(floor);
    floor->exchange.quorum = (unsigned)nodes->count / 2 + 1;
    for (unsigned i = 0; i < nodes->count; i++) {
        if (!connect_node(floor, i, nodes->at[i])) {
            (void)snprintf(error, CONTENDER_ERROR_SIZE, "%s: %s", nodes->at[i], strerror(errno));
            disconnect(floor);
            return;
        }
    }
}

int main(void) {
    static const struct contender contender = {
        .name = "floor",
        .version = "1",
        .notes =
            "no lock: preformatted bytes, votes counted; no validity, no timeouts, no random tokens, no reconnection",
        .connect = connect_nodes,
        .cycles = cycles};
    struct floor floor = {.exchange = {.send = queue, .data = &floor}};
    floor.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (floor.epoll < 0) {
        contender_fatal("epoll_create1: %s", strerror(errno));
    }
    exchange_make(&floor.exchange);
    int status = contender_run(&contender, &floor);
    disconnect(&floor);
    exchange_free(&floor.exchange);
    (void)close(floor.epoll);
    return status;
}
