/* The server program of local nodes: where it is, and of which version. */
#ifndef CHAOS_SERVER_H
#define CHAOS_SERVER_H

#include <limits.h>
#include <stdbool.h>

#include "faults/error.h"

struct chaos_server {
    char path[PATH_MAX]; /* absolute, or a name without a slash, of PATH */
    bool valkey;
    int major, minor; /* of Valkey's or of Redis's own count */
};

/*
 * `name`: a program as a shell would find it; NULL: redis-server, then valkey-server, of PATH. It
 * is run once, with --version. False with a sentence where there is none, where it is something
 * else, and where it is older than Redis 6.0, which knew no users.
 */
bool chaos_server_find(struct chaos_server *server, const char *name, struct chaos_error *error);

#endif
