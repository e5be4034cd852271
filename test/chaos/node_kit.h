/* Nodes for tests: a backend in its own directory, and questions to its nodes. */
#ifndef NODE_KIT_H
#define NODE_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "support.h"

struct nodes {
    const char *kind;   /* of the backend; NULL: "process" */
    char directory[64]; /* its name contains a space and a colon */
    struct chaos_backend_options options;
    struct chaos_backend *backend;
    struct chaos_error error;
};

/* Fill the options before nodes_start(), which sets directory, and nodes to 1 if 0. */
void nodes_start(struct nodes *nodes);
/* Only makes the directory and the backend. Returns false with nodes->error. */
bool nodes_create(struct nodes *nodes);
/* Stops the nodes, asserts that no process is left, and removes the directory. */
void nodes_stop(struct nodes *nodes);

/* A node's answer to a new connection of the default user: a status, an error's text, a number as
 * text, "(nil)", or "no answer" after 2 s. The next call overwrites it. */
const char *nodes_ask(const struct nodes *nodes, size_t n, const char *command);
/* Asks until this is the answer. Fails the test after 20 s. */
void nodes_await(const struct nodes *nodes, size_t n, const char *command, const char *answer);

/* The backend's function, for a test that has `nodes`; WORKS() fails the test where it is false. */
#define CALL(function, ...) (nodes->backend->ops->function(nodes->backend, __VA_ARGS__, &nodes->error))
#define WORKS(function, ...)                                                                                           \
    do {                                                                                                               \
        if (!CALL(function, __VA_ARGS__)) {                                                                            \
            fail_msg("%s: %s", #function, nodes->error.text);                                                          \
        }                                                                                                              \
    } while (0)

/* 'R', 'S', 'T', 'Z' …; 0 without such a process. */
char nodes_process_state(pid_t pid);
/* The number of this process's children, zombies included. */
size_t nodes_children(void);

#endif
