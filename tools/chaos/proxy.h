/* The link proxy's process, and what the conductor and it say to each other: one packet each, and each command is answered. */
#ifndef CHAOS_PROXY_H
#define CHAOS_PROXY_H

#include <stddef.h>
#include <stdint.h>

#include "links.h"

/* The first packet from the proxy. */
struct chaos_proxy_ready {
    char error[512]; /* "" if it listens */
    uint16_t ports[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX];
};

enum chaos_proxy_order { CHAOS_ORDER_SET, CHAOS_ORDER_CUT };

struct chaos_proxy_command {
    uint64_t number; /* the answer is the same number: it is done */
    enum chaos_proxy_order order;
    uint32_t client, node;
    struct chaos_link_rule rule;
};

/* Serves until the other end of `control` (SOCK_SEQPACKET) is closed by all who have it. The process's exit status. */
int chaos_proxy_run(int control, size_t clients, size_t nodes, const uint16_t *upstream);

#endif
