/* N nodes: start, kill, restart, pause, lose packets. One implementation a way of running them. */
#ifndef CHAOS_BACKEND_H
#define CHAOS_BACKEND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/clock.h"
#include "faults/error.h"

struct chaos_backend_options {
    size_t nodes;
    bool append_only;      /* appendfsync always: a killed node comes back with its keys */
    bool tls;              /* processes: nodes speak TLS on ports of its own */
    const char *directory; /* the run's own, absolute; a node's files go to node-1, … in it */
    /* processes: the program; NULL: redis-server, then valkey-server, of PATH */
    const char *server;
    const char *shim;         /* the preloadable clock, absolute; NULL: no clock faults */
    const char *compose_file; /* compose: docker-compose.yml of the project */
};

/*
 * It is no error to kill a dead node, to restart a running one, to resume one that is not paused,
 * or to let packets pass where none are dropped: nothing happens. The backend waits for its own
 * processes by pid, so the caller's waitpid(-1) sees only nodes that ended by themselves.
 * Every node has a default user without a password, and a user "chaos" with the password "chaos"
 * that may do anything. The nemesis and the auditor are that user, so a password fault does not
 * lock them out; they speak no TLS. Commands DEBUG and CONFIG are enabled. Nothing outlives the
 * process that made the backend. Functions return false with a sentence in error: what was tried,
 * on which node, what came back, what to do.
 */
struct chaos_backend;

struct chaos_backend_ops {
    /* Waits until a node that was started answers PING, 10 s at most. */
    bool (*start)(struct chaos_backend *backend, struct chaos_error *error);
    /* SIGKILL; returns when it is dead. */
    bool (*kill)(struct chaos_backend *backend, size_t node, struct chaos_error *error);
    /* Starts it again at the same address, without waiting until it answers. `empty`: without its
     * AOF. */
    bool (*restart)(struct chaos_backend *backend, size_t node, bool empty, struct chaos_error *error);
    bool (*pause)(struct chaos_backend *backend, size_t node, struct chaos_error *error);
    bool (*resume)(struct chaos_backend *backend, size_t node, struct chaos_error *error);
    /* From now on all packets from and to the node are lost, until they are not any more or until
     * its restart. Of processes it is refused: they have no network of their own. */
    bool (*lose)(struct chaos_backend *backend, size_t node, bool lost, struct chaos_error *error);
    /*
     * Ends all nodes, removes their keys, and what it made outside of directory; logs stay. False
     * with a sentence about what it could not end. Only chaos_backend_destroy() may follow.
     */
    bool (*stop)(struct chaos_backend *backend, struct chaos_error *error);
};

struct chaos_backend {
    const struct chaos_backend_ops *ops;
    struct chaos_backend_options options;
    char directories[31][PATH_MAX]; /* of the nodes */
    uint16_t ports[31];             /* of 127.0.0.1, once started */
    uint16_t tls_ports[31];         /* those of TLS, for the clients; 0 without it */
    char certificate[PATH_MAX];     /* of all nodes, which is its own authority; "" without TLS */
    struct chaos_clock *clocks[31]; /* NULL without a shim */
    pid_t pids[31];                 /* processes: those that run; else 0 */
    void *own;                      /* the implementation's */
};

/* "process" or "compose". Copies nothing: the strings must live as long. NULL with a sentence: no
 * such backend, no redis-server, no docker. */
struct chaos_backend *chaos_backend_create(const char *name, const struct chaos_backend_options *options,
                                           struct chaos_error *error);
/* Stops what has not been stopped, and closes the clocks. NULL is let pass. */
void chaos_backend_destroy(struct chaos_backend *backend);

/* For chaos_backend_create(): set ops and own. stop() frees own, and does nothing where it is
 * NULL. */
/* Makes the nodes' directories, with their clocks. */
bool chaos_backend_make_directories(struct chaos_backend *backend, struct chaos_error *error);
bool chaos_backend_process(struct chaos_backend *backend, struct chaos_error *error);
bool chaos_backend_compose(struct chaos_backend *backend, struct chaos_error *error);

/* For the implementations: the files of a local node (its directory, log, clock and AOF), and its
 * port. */

/*
 * Chooses ports[n], of 127.0.0.1, on which nobody listens, and none of the other ports. It is none
 * of those that the kernel gives to connections: while the node is dead, a client that tries again
 * and again would be given the node's own port some day, be connected to itself, and keep the node
 * from coming back. False, and 0, if there is none.
 */
bool chaos_node_port(uint16_t *ports, size_t count, size_t n);

/* These return false with errno. A node's directory is DIRECTORY/node-N; redis.conf, log, clock and
 * data are in it, and the server runs in it. */

/* Keys on disk: all that is in data. */
bool chaos_node_remove_keys(const char *directory);
/* An empty directory too; what is not there is removed already. */
bool chaos_node_remove_file(const char *directory, const char *name);

/* A file as text, to be freed; NULL if it is empty or cannot be read. */
char *chaos_text_read(const char *path);
/* Whether the log has these words; the first line that has them into line, unless that is NULL. */
bool chaos_node_log_finds(const char *directory, const char *words, char *line, size_t size);
/* Its last lines, in one, for an error. Returns text. */
char *chaos_node_log_end(const char *directory, char *text, size_t size);

#endif
