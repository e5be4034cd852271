/* A connection through the link proxy: the client's socket, the node's, and a pipe each way. */
#ifndef CHAOS_PROXY_CONNECTION_H
#define CHAOS_PROXY_CONNECTION_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy_pipe.h"

enum { CHAOS_READ_SIZE = 65536, CHAOS_LINK_CONNECTIONS_MAX = 256, CHAOS_RETRY_MS = 100 };

enum chaos_side { CHAOS_SIDE_CLIENT, CHAOS_SIDE_NODE };
/* Which way: from the client to the node, and back. The way w reads from side w and writes to side 1 - w. */
enum { CHAOS_REQUESTS, CHAOS_REPLIES };

/*
 * state     event                                       → state
 * PASSING   the source ends: FIN, or RST                → ENDING: its end waits behind the bytes
 *           the target is lost (RST, or refused)        → DROPPING: bytes are thrown away; the other way will end by RST
 * ENDING    the end's turn: FIN                         → DONE; RST → the connection is over
 *           the target is lost                          → DROPPING
 * DONE      the source turns out to be lost             → ENDING, by RST
 *           the target is lost                          → DROPPING
 * DROPPING  the source ends                             → DROPPING, nothing is read any more
 * The connection is over with both ways DONE, or both DROPPING, or a RST passed on, or a cut.
 */
enum chaos_way_state { CHAOS_WAY_PASSING, CHAOS_WAY_ENDING, CHAOS_WAY_DONE, CHAOS_WAY_DROPPING };

struct chaos_way {
    struct chaos_connection *connection;
    struct chaos_pipe pipe;
    enum chaos_way_state state;
    bool source_ended; /* nothing is read any more */
    bool source_lost;  /* writing to it failed: whatever end is read from it, it is a RST */
    ev_io reader;      /* of the source */
    ev_io writer;      /* of the target: while it takes no more, and until the node is connected */
    ev_timer wake;
    int64_t wake_us; /* what wake is set for */
};

enum chaos_node_state { CHAOS_NODE_UNOPENED, CHAOS_NODE_CONNECTING, CHAOS_NODE_OPEN };

struct chaos_connection {
    struct chaos_proxy_link *link;
    struct chaos_connection *next, **self; /* in the link's list */
    enum chaos_node_state node;
    int fds[2]; /* by side; -1: none */
    struct chaos_way ways[2];
};

/* What all links of a proxy have in common. */
struct chaos_proxy_shared {
    struct ev_loop *loop;
    ev_timer rested; /* after a while, listeners that had no descriptors left try again */
    bool told;       /* that descriptors, memory or ports ran out */
    char buffer[CHAOS_READ_SIZE];
};

struct chaos_proxy_link {
    struct chaos_proxy_shared *shared;
    size_t client, node; /* from 0 */
    uint16_t upstream;   /* the node's port on 127.0.0.1 */
    ev_io listener;
    struct chaos_lane lanes[2];
    struct chaos_connection *connections;
    size_t connection_count;
};

/* Takes the client's socket, which is non-blocking. */
void chaos_connection_open(struct chaos_proxy_link *link, int client);
/* The link's rule has changed. */
void chaos_connection_rule_changed(struct chaos_connection *connection);
/* Closes both sides at once; reset: by RST. */
void chaos_connection_close(struct chaos_connection *connection, bool reset);
/* Closes a socket, by RST. */
void chaos_socket_reset(int fd);

/* Says on standard error, once a process, that something ran out (errno). */
void chaos_proxy_complain(struct chaos_proxy_link *link, const char *what);

#endif
