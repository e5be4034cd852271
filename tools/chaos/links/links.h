/* The links from clients to nodes, which lead through the fault proxy: one listener a link. */
#ifndef CHAOS_LINKS_H
#define CHAOS_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/fault.h"
#include "proxy/child.h"

struct chaos_link_rule {
    bool hold_requests; /* bytes wait, in order; new connections are taken, and wait too */
    bool hold_replies;
    int64_t delay_us;    /* each way */
    int64_t jitter_us;   /* each piece of bytes up to so much more, never out of order */
    int64_t bytes_per_s; /* each way; 0: no limit */
    /* The connections that stood when this began pass nothing. See chaos_links_silence(). */
    bool silent;
};

struct chaos_links {
    size_t nodes, clients;
    struct proxy_child proxy;
    uint16_t ports[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX]; /* where client c finds node n */
};

/* Starts the proxy's process; upstream: the nodes' ports on 127.0.0.1. False with a sentence. */
bool chaos_links_start(struct chaos_links *links, size_t clients, size_t nodes, const uint16_t *upstream,
                       struct chaos_error *error);
/*
 * These take effect before they return, on connections that stand and on later ones. False with a
 * sentence: see proxy_child_ask().
 */
bool chaos_links_set(struct chaos_links *links, size_t client, size_t node, const struct chaos_link_rule *rule,
                     struct chaos_error *error);
/* Holds all bytes of the connections that stand, and not of later ones; or lets them pass again. */
bool chaos_links_silence(struct chaos_links *links, size_t client, size_t node, bool silent, struct chaos_error *error);
/* Resets the connections of a link on both sides; what was under way is lost. The rule stays. */
bool chaos_links_cut(struct chaos_links *links, size_t client, size_t node, struct chaos_error *error);
/* A second time it does nothing. */
void chaos_links_stop(struct chaos_links *links);

#endif
