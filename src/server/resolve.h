/* Resolves a host to socket addresses without blocking the loop (R16). */
#ifndef REDLOCK_SERVER_RESOLVE_H
#define REDLOCK_SERVER_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "server/address.h"

#define REDLOCK_ENDPOINTS_MAX 8

struct redlock_endpoint {
    struct sockaddr_storage address;
    socklen_t size;
};

struct redlock_endpoints {
    struct redlock_endpoint list[REDLOCK_ENDPOINTS_MAX];
    size_t count;
};

/* Resolves a literal address or a socket's path. Returns false for a name, which needs a lookup. */
bool redlock_resolve_literal(const struct redlock_address *address, struct redlock_endpoints *endpoints);

/* A lookup runs getaddrinfo on a detached thread. Nothing can interrupt it, so nothing waits for
 * it. */
struct redlock_lookup;

/* Returns NULL and sets error to an errno if no thread could start. */
struct redlock_lookup *redlock_lookup_start(const char *host, uint16_t port, int *error);

/* Becomes readable at the end of the lookup. */
int redlock_lookup_fd(const struct redlock_lookup *lookup);

/* Returns whether the lookup is finished. Then sets the endpoints, and *error: NULL, or why there
 * is no address. */
bool redlock_lookup_done(const struct redlock_lookup *lookup, struct redlock_endpoints *endpoints, const char **error);

/* Drops the lookup. If its thread still runs, the thread frees it. A forked child has no such
 * thread. */
void redlock_lookup_drop(struct redlock_lookup *lookup, bool forked);

#endif
