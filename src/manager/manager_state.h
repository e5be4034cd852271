/* The state of a manager. */
#ifndef REDLOCK_MANAGER_MANAGER_STATE_H
#define REDLOCK_MANAGER_MANAGER_STATE_H

#include <redlock/redlock.h>

#include "election/campaign.h"
#include "group/entry.h"
#include "loop/loop.h"
#include "node/node.h"
#include "wire/info.h"

struct redlock_manager {
    struct redlock_group *group;
    struct redlock_elections elections;
    struct redlock_loop *loop;
    struct redlock_node *nodes[REDLOCK_NODES_MAX];
    const char *names[REDLOCK_NODES_MAX];
    unsigned count;
    /* The server that each node was on its last connection; "" if it did not say. */
    char run_ids[REDLOCK_NODES_MAX][REDLOCK_INFO_WORD_SIZE];
    char *client_name;
    /* Keys of the handshake: see redlock_node_options. marker is NULL with one node. */
    char *probed, *marker;
    struct redlock_tls_context *tls; /* NULL for none */
    bool uses_tls;                   /* a node has it */
    bool closing;
    redlock_closed_callback closed;
    void *closed_data;
};

#endif
