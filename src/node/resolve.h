/* From a host to addresses that a socket can connect to, without blocking the loop (R16). */
#ifndef REDLOCK_NODE_RESOLVE_H
#define REDLOCK_NODE_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "node/address.h"

#define REDLOCK_ENDPOINTS_MAX 8

struct redlock_endpoint {
    struct sockaddr_storage address;
    socklen_t size;
};

struct redlock_endpoints {
    struct redlock_endpoint list[REDLOCK_ENDPOINTS_MAX];
    size_t count;
};

/* A literal address or a socket's path needs no lookup. Returns false for a name. */
bool redlock_resolve_literal(const struct redlock_address *address, struct redlock_endpoints *endpoints);

/* getaddrinfo on a detached thread: it cannot be interrupted, so it is never waited for. */
struct redlock_lookup;

/* NULL if no thread could be started: error is an errno then. */
struct redlock_lookup *redlock_lookup_start(const char *host, uint16_t port, int *error);

/* Becomes readable when the lookup is done. */
int redlock_lookup_fd(const struct redlock_lookup *lookup);
bool redlock_lookup_done(const struct redlock_lookup *lookup);

/* Of one that is done: NULL, or why there is no address. */
const char *redlock_lookup_result(const struct redlock_lookup *lookup, struct redlock_endpoints *endpoints);

/* Gives it up; the thread frees it if it still runs. In a forked child there is no such thread. */
void redlock_lookup_drop(struct redlock_lookup *lookup, bool forked);

#endif
