/* Nodes for tests: a backend in a directory of its own, and questions to its nodes. */
#ifndef NODE_KIT_H
#define NODE_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "support.h"

struct nodes {
    char directory[64]; /* has a space and a colon in its name */
    struct chaos_backend_options options;
    struct chaos_backend *backend;
    char error[700];
};

/* Fill the options before nodes_start(): directory and nodes (1 if 0) are set by it. */
void nodes_start(struct nodes *nodes);
/* Only makes the directory and the backend; false with nodes->error. */
bool nodes_create(struct nodes *nodes);
/* Stops, asserts that no process is left, and removes the directory. */
void nodes_stop(struct nodes *nodes);

/* What a new connection of the default user is answered: a status or an error's text, a number as
 * text, "(nil)", or "no answer" in 2 s. In a buffer that the next call overwrites. */
const char *nodes_ask(const struct nodes *nodes, size_t n, const char *command);
/* Asks until it is answered so, 20 s at most; else the test fails. */
void nodes_await(const struct nodes *nodes, size_t n, const char *command, const char *answer);

/* 'R', 'S', 'T', 'Z' …; 0 if there is no such process. */
char nodes_process_state(pid_t pid);
/* Of this process; zombies count. */
size_t nodes_children(void);

#endif
