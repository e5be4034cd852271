/* The floor's nodes: raw sockets in an epoll, what is queued for them, and whose reply is next. */
#ifndef BENCH_FLOOR_NODES_H
#define BENCH_FLOOR_NODES_H

#include "contender.h"
#include "exchange.h"
#include "floor_tls.h"

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
    int wake_up; /* an eventfd; -1: none */
    struct node nodes[CONTENDER_NODES_MAX];
    struct ssl_ctx_st *tls; /* NULL: none */
    const char *ca_file;
    bool seals;
    uint64_t sealed_cycles; /* that are left */
    char *error;            /* of the current run */
};

/* Opens the epoll, and formats the requests. The rest of the floor is filled in already. */
void floor_begin(struct floor *floor);
void floor_end(struct floor *floor);

/* These two are a contender's connect. All sockets are closed then, or all are open. */
void floor_connect(void *data, const struct contender_nodes *nodes, char error[CONTENDER_ERROR_SIZE]);
void floor_disconnect(struct floor *floor);

/* The run has failed: it ends. */
void floor_fail(struct floor *floor, const char *what);

/* Writes what is queued. */
void floor_flush(struct floor *floor);
/* Waits for replies and counts them. Returns false if nothing came in time. */
bool floor_wait(struct floor *floor, int timeout_ms);
/* Whether no node owes a reply. */
bool floor_is_idle(const struct floor *floor);

#endif
