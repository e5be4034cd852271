/* The floor: raw epoll and prepared bytes. It does the least that a lock on N nodes needs, so no
 * client can be faster.
 *
 * With the arguments `tls CA_FILE`, it speaks TLS. With `sealed CA_FILE`, it encrypts the requests
 * before the clock starts and decrypts the replies after it has stopped, so TLS costs the client
 * nothing: what is left is the cost of TLS in the nodes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "contender.h"
#include "exchange.h"
#include "floor_tls.h"

/* Room for twice the requests that the workers can leave unread at a slow node: two each. */
#define OUT_SIZE  (4 * CONTENDER_WORKERS_MAX * sizeof(struct exchange_request))
#define FIFO_SIZE 65536U /* a power of two */
#define IN_SIZE   65536
#define ANSWER_MS 5000 /* without any answer for this long, give up */
#define LATE_MS   100

/* More than there are cycles in a millisecond. */
#define SEALED_A_MS 40

struct node {
    int fd;
    struct floor_tls *tls; /* NULL: none */
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
    struct ssl_ctx_st *tls; /* NULL: none */
    const char *ca_file;
    bool seals;
    uint64_t sealed_cycles; /* that are left */
    char *error;            /* of the current run */
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

/* Returns false if nothing came in time. */
static bool turn(struct floor *floor, int timeout_ms) {
    struct epoll_event events[CONTENDER_NODES_MAX];
    int count = epoll_wait(floor->epoll, events, CONTENDER_NODES_MAX, timeout_ms);
    if (count <= 0) {
        return count < 0 && errno == EINTR;
    }
    for (int i = 0; i < count; i++) {
        if (floor->nodes[events[i].data.u32].fd >= 0 && events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            struct node *node = &floor->nodes[events[i].data.u32];
            do {
                take(floor, node);
            } while (node->tls && node->fd >= 0 && floor_tls_has_more(node->tls));
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

/* Encrypts what one worker sends from here on, as far as that is not done. */
static bool seal(struct floor *floor, uint64_t cycle_count) {
    const struct exchange_worker *worker = &floor->exchange.workers[0];
    for (; floor->sealed_cycles < cycle_count; floor->sealed_cycles++) {
        const uint64_t name = (worker->name + floor->sealed_cycles) % CONTENDER_NAMES;
        const struct exchange_request *acquire = &worker->acquire[name], *release = &worker->release[name];
        for (unsigned i = 0; i < floor->exchange.node_count; i++) {
            struct floor_tls *tls = floor->nodes[i].tls;
            if (!floor_tls_seal(tls, acquire->bytes, acquire->size) ||
                !floor_tls_seal(tls, release->bytes, release->size)) {
                return false;
            }
        }
    }
    return true;
}

/* Checks the replies of all nodes. */
static bool unseal(struct floor *floor, const struct contender_cycles *cycles) {
    bool all = cycles->failed == 0 && cycles->cycles <= floor->sealed_cycles;
    floor->sealed_cycles -= all ? cycles->cycles : floor->sealed_cycles;
    for (unsigned i = 0; i < floor->exchange.node_count; i++) {
        all = floor_tls_unseal(floor->nodes[i].tls) && all;
    }
    return all;
}

static void cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    struct floor *floor = data;
    floor->error = error;
    if (floor->exchange.node_count == 0) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
        return;
    }
    if (floor->seals && (cycles->workers != 1 || !seal(floor, (uint64_t)cycles->duration_ms * SEALED_A_MS))) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "requests are sealed for one worker only, or there is no memory");
        return;
    }
    int64_t began_ns = contender_now_ns(), now_ns = began_ns;
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
    while (!*error && !idle(floor) && turn(floor, floor->seals ? ANSWER_MS : LATE_MS)) {
        /* count late votes in this run, except those of a node that hangs */
    }
    if (floor->seals && !*error && !unseal(floor, cycles)) {
        cycles->cycles = cycles->failed = 0;
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "a reply was missing or was no yes");
    }
}

static void disconnect(struct floor *floor) {
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

int main(int count, char **arguments) {
    const bool seals = count == 3 && strcmp(arguments[1], "sealed") == 0;
    const bool tls = seals || (count == 3 && strcmp(arguments[1], "tls") == 0);
    if (count > 1 && !tls) {
        contender_fatal("usage: floor [tls CA_FILE | sealed CA_FILE]");
    }
    const struct contender contender = {
        .name = seals ? "floor_sealed"
                : tls ? "floor_tls"
                      : "floor",
        .version = "1",
        .notes = seals ? "floor_tls that encrypts before the clock starts and decrypts after it"
                 : tls ? "floor over TLS: OpenSSL on the sockets"
                       : "no lock: preformatted bytes, votes counted; no validity, no timeouts, no random tokens, no "
                         "reconnection",
        .connect = connect_nodes,
        .cycles = cycles};
    struct floor floor = {.exchange = {.send = queue, .data = &floor}, .seals = seals};
    if (tls) {
        floor.tls = floor_tls_begin();
        floor.ca_file = arguments[2];
    }
    floor.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (floor.epoll < 0) {
        contender_fatal("epoll_create1: %s", strerror(errno));
    }
    exchange_make(&floor.exchange);
    int status = contender_run(&contender, &floor);
    disconnect(&floor);
    exchange_free(&floor.exchange);
    floor_tls_end(floor.tls);
    (void)close(floor.epoll);
    return status;
}
