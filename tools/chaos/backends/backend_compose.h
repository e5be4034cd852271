/* What the files of the compose backend share. */
#ifndef CHAOS_BACKEND_COMPOSE_H
#define CHAOS_BACKEND_COMPOSE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "backends/backend.h"
#include "backends/program.h"

/* In the containers. */
#define CHAOS_COMPOSE_MOUNT "/redlock-chaos"          /* a node's directory */
#define CHAOS_COMPOSE_SHIM  "/redlock-chaos-clock.so" /* the preloaded clock */

struct chaos_compose {
    bool plugin; /* `docker compose`, version 2; else docker-compose */
    /* of this run alone: its containers, networks and volumes have it as a label */
    char project[64];
    char file[PATH_MAX];     /* docker-compose.yml, absolute */
    char override[PATH_MAX]; /* ours, laid over it */
    char names[31][96];      /* of the containers */
    int guard;               /* the guard's ear; -1: there is none */
};

/* A container, as docker sees it. */
enum chaos_compose_state {
    CHAOS_CONTAINER_UNKNOWN,
    CHAOS_CONTAINER_DEAD,
    CHAOS_CONTAINER_RUNS,
    CHAOS_CONTAINER_PAUSED
};

struct chaos_container {
    int pid;
    char id[80];
};

/* What a node's container does; UNKNOWN with a sentence. container: NULL where nobody asks. */
enum chaos_compose_state chaos_compose_look(const struct chaos_backend *backend, size_t node,
                                            struct chaos_container *container, struct chaos_error *error);

/* docker, for a minute at most. */
enum { CHAOS_DOCKER_MS = 60000 };
#define CHAOS_DOCKER(said, ...)                                                                                        \
    chaos_program_run((const char *const[]){"docker", __VA_ARGS__, NULL}, NULL, -1, CHAOS_DOCKER_MS, (said))

/* The compose file (backend_compose_file.c) */

/* The command line that compose's own words are to follow; returns how many there are. */
size_t chaos_compose_argv(const struct chaos_compose *compose, bool with_override, const char **argv);
/* Whether the file is sound, has a service for every node, and the images of those are here. False
 * with a sentence. */
bool chaos_compose_check_file(const struct chaos_compose *compose, size_t nodes, struct chaos_error *error);
/* Writes the override. False with a sentence. */
bool chaos_compose_write_override(const struct chaos_backend *backend, struct chaos_error *error);

/* The operation lose (backend_compose_drop.c) */
bool chaos_compose_lose(struct chaos_backend *backend, size_t node, bool lost, struct chaos_error *error);

/* What is left (backend_compose_guard.c) */

/* Ends and removes all that docker has of the project. False with a sentence about what is still
 * there. */
bool chaos_compose_sweep(const char *project, struct chaos_error *error);
/* A process that sweeps once we are dead, however we died; it is no child of ours. False with
 * errno. */
bool chaos_compose_guard_start(struct chaos_compose *compose);
/* Sends it home and waits until it has gone. */
void chaos_compose_guard_stop(struct chaos_compose *compose);

#endif
