/* One set of nodes: those that the caller configured, and the group of leases on them. */
#ifndef REDLOCK_MANAGER_FLEET_H
#define REDLOCK_MANAGER_FLEET_H

#include <redlock/redlock.h>

#include "base/check.h"
#include "group/group.h"
#include "loop/loop.h"
#include "node/node.h"
#include "wire/info.h"

struct redlock_fleet {
    struct redlock_group *group; /* NULL if it could not be opened */
    struct redlock_loop *loop;   /* borrowed */
    struct redlock_reactor reactor;
    struct redlock_watch timer; /* wakes the group */
    struct redlock_node *nodes[REDLOCK_NODES_MAX];
    const char *names[REDLOCK_NODES_MAX];
    unsigned count;
    /* The server that each node was on its last connection; "" if it did not say. */
    char run_ids[REDLOCK_NODES_MAX][REDLOCK_INFO_WORD_SIZE];
    char *client_name;
    /* Keys of the handshake: see redlock_server_options. marker is NULL with one node. */
    char *probed, *marker;
    struct redlock_tls_context *tls; /* NULL for none */
    bool uses_tls;                   /* a node has it */
};

/* Of checked options. The fleet is all zero, and must stay where it is. Close it, too, if this
 * fails. */
int redlock_fleet_open(struct redlock_fleet *fleet, struct redlock_loop *loop, const redlock_manager_options *options,
                       struct redlock_error_text *failure);
/* In a forked child, set `forked`: it only closes descriptors. */
void redlock_fleet_close(struct redlock_fleet *fleet, bool forked);

/* Gives new credentials to one node, or to all. They are checked, and copied. */
int redlock_fleet_set_credentials(struct redlock_fleet *fleet, size_t node, const char *user, const char *password);

#endif
