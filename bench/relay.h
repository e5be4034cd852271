/* Stands between the library and one server. It holds the requests that are counted until all of a
 * phase have come, so that those of one kind reach the server together. */
#ifndef BENCH_RELAY_H
#define BENCH_RELAY_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#define RELAY_LINKS    2 /* the library has a connection for requests and one to listen */
#define RELAY_HELD_MAX 2048

/* The kinds of requests. A script is known by the number of its keys. */
enum relay_kind {
    RELAY_OTHER = 1, /* passed on at once, if nothing is held on this connection */
    RELAY_SET = 2,
    RELAY_DELETE = 4, /* DELEX, DELIFEQ */
    RELAY_SCRIPT = 8, /* release and extend */
    RELAY_SCRIPT_FENCED = 16,
    RELAY_SCRIPT_QUEUED = 32,
};

struct relay_request {
    enum relay_kind kind;
    size_t at, size;       /* in the input of its link */
    size_t reply_at, said; /* in the output; 0: not passed on yet */
};

struct relay_link {
    struct relay *relay;
    int client, server; /* -1: not connected */
    bool listens;       /* has sent SUBSCRIBE */
    ev_io client_io, server_io;
    size_t used, parsed, output_used, held;
    struct relay_request requests[RELAY_HELD_MAX];
    char input[1048576], output[1048576];
};

struct relay {
    struct ev_loop *loop;
    const char *path, *server_path;
    int listener;
    ev_io listener_io;
    ev_timer idle;
    struct relay_link links[RELAY_LINKS];
};

/* Listens on `path` for the library, and connects to the server for each connection. */
void relay_start(struct relay *relay, struct ev_loop *loop, const char *path, const char *server_path);
void relay_stop(struct relay *relay);

/* Runs the loop once. */
void relay_run(struct relay *relay);

/* Runs the loop until `count` requests of these kinds are held. */
void relay_collect(struct relay *relay, unsigned kinds, size_t count);

/* Passes on the held requests of these kinds, one after the other, and keeps the replies. Returns
 * how many there were. */
size_t relay_pass(struct relay *relay, unsigned kinds);

/* Gives the library all replies. A request that was not passed on is an error. */
void relay_deliver(struct relay *relay);

#endif
