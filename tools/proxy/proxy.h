/* The inside of the proxy: its links and connections, and when each stream runs. */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipe.h"

enum {
    PROXY_READ_SIZE = 65536,
    PROXY_CONNECTIONS_MAX = 256, /* for each link */
    PROXY_RETRY_MS = 100,        /* after a lack of descriptors, memory or ports */
};

/* An epoll event points to this, the first member of the object that it is about. */
struct proxy_source {
    int fd; /* -1: none */
    void (*on_event)(struct proxy_source *source, uint32_t events);
};

/*
 * One way of a connection. The stream of way w reads from end w and writes to end 1 - w.
 *
 * state     event                                  → state
 * PASSING   the source ends: FIN or RST            → PASSING: the end waits behind the bytes
 *           the end is due: FIN                    → DONE; else the connection is over
 *           the target is lost (RST, or refused)   → DROPPING: bytes are thrown away, and the other
 *                                                    stream will end by RST
 * DONE      the source turns out to be lost        → PASSING, with a RST that waits
 *           the target is lost                     → DROPPING
 * DROPPING  the source ends                        → DROPPING
 * The connection is over when both are DONE or both DROPPING, at a RST passed on, and at a cut. A
 * dismissed connection, whose replies are DROPPING from then on, is over when its requests are DONE
 * and the node has ended.
 */
enum proxy_state { PROXY_PASSING, PROXY_DONE, PROXY_DROPPING };

struct proxy_stream {
    struct proxy_connection *connection;
    struct proxy_pipe pipe;
    enum proxy_state state;
    bool source_ended; /* read no more */
    bool source_lost;  /* a write to it failed: any end that it shows is a RST */
    bool deaf;         /* drop what comes */
    int64_t came;      /* bytes */
    struct mishap_marks marks;
    int64_t retry_us; /* do nothing before that time; 0: no such wait */
    /* The entry in the agenda, unless wake_us is PROXY_PIPE_NEVER_US. */
    int64_t wake_us;
    struct proxy_stream *before, *after;
};

/* One socket of a connection. Events are edge-triggered: a flag stays until a call returns
 * EAGAIN. */
struct proxy_socket {
    struct proxy_source source;
    struct proxy_connection *connection;
    bool readable, writable, hung_up;
};

enum proxy_node_state { PROXY_NODE_UNOPENED, PROXY_NODE_CONNECTING, PROXY_NODE_OPEN };

struct proxy_connection {
    struct proxy_link *link;
    struct proxy_connection *next, **self; /* in the link's list; after the close, in the proxy's */
    bool closed;
    enum proxy_node_state node;
    struct proxy_socket sockets[2]; /* the client's, the node's */
    struct proxy_stream streams[2]; /* indexed by enum proxy_way */
};

struct proxy_link {
    struct proxy_source listener;
    struct proxy_server *proxy;
    uint16_t port, target; /* on 127.0.0.1 */
    struct proxy_lane lanes[2];
    struct proxy_connection *connections;
    size_t connection_count;
    struct mishap planned[2];
    /* Counters since the start. */
    int64_t bytes[2], accepted, mishaps[MISHAP_KINDS];
};

/* Streams with a wake-up time, sorted by it. Most insertions are at the end. */
struct proxy_agenda {
    struct proxy_stream *first, *last;
    struct proxy_source timer;
    int64_t armed_us;
};

struct proxy_server {
    struct proxy_source input;
    int output, epoll;
    bool over;         /* the input has ended */
    bool complained;   /* about a lack of resources */
    int64_t rested_us; /* listeners pause until then; 0: none does */
    struct proxy_agenda agenda;
    struct proxy_connection *closed; /* freed when no event of this turn can point to them */
    struct proxy_link *links;
    size_t link_count;
    size_t line_size; /* of the incomplete command */
    char line[1024];
    char buffer[PROXY_READ_SIZE + MISHAP_BYTES_MAX];
};

/* serve.c */

bool proxy_watch(struct proxy_server *proxy, struct proxy_source *source, uint32_t events);
/* Switches the listener on or off. */
void proxy_listen(struct proxy_link *link, bool on);
/* Reports errno on standard error: something ran out. Only once in a process. */
void proxy_complain(struct proxy_link *link, const char *what);
/* Closes all open connections, and resets those that wait in the kernel. */
void proxy_cut(struct proxy_link *link, bool reset_client, bool reset_node);
/* Sets when the stream runs next. PROXY_PIPE_NEVER_US removes it. */
void proxy_agenda_at(struct proxy_agenda *agenda, struct proxy_stream *stream, int64_t when_us);

/* connection.c */

/* Takes over the client's socket, which is non-blocking. */
void proxy_connection_open(struct proxy_link *link, int client);
/* Runs the stream: it is due, or its rule has changed. */
void proxy_stream_pump(struct proxy_stream *stream);
void proxy_connection_close(struct proxy_connection *connection, bool reset_client, bool reset_node);
/* Tells the client that the node has closed. Its requests still go on. */
void proxy_connection_dismiss(struct proxy_connection *connection);
void proxy_socket_close(int fd, bool reset);

/* command.c */

/* Runs the command in a line and writes the line of the answer. README.md lists the commands. */
void proxy_command(struct proxy_server *proxy, char *line, char *answer, size_t size);

#endif
