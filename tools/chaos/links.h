/* The link proxy: a process with one listener a client and node, steered by the conductor over a socket pair. */
#ifndef CHAOS_LINKS_H
#define CHAOS_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "faults/fault.h"

struct chaos_link_rule {
    bool hold_requests; /* what was sent waits, in order, until it is off; new connections are taken, and wait too */
    bool hold_replies;
    int64_t delay_us;    /* each way */
    int64_t jitter_us;   /* each piece of bytes up to so much more, never out of order */
    int64_t bytes_per_s; /* each way; 0: no limit */
};

struct chaos_links {
    size_t nodes, clients;
    pid_t pid; /* 0: does not run */
    int control;
    uint64_t asked;                                     /* commands so far */
    uint16_t ports[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX]; /* of 127.0.0.1: where client c finds node n */
};

/*
 * Forks the proxy's process, which dies with this one (more exactly, with the thread that called); upstream: the nodes' ports on 127.0.0.1. False with a
 * sentence. What runs out in the proxy later on is said on standard error.
 */
bool chaos_links_start(struct chaos_links *links, size_t clients, size_t nodes, const uint16_t *upstream, char *error,
                       size_t error_size);
/*
 * These take effect before they return; on connections that stand and on later ones. False with a sentence if the process has died, or does not
 * answer in 5 s, and for a rule that makes no sense (a time over a day).
 */
bool chaos_links_set(struct chaos_links *links, size_t client, size_t node, const struct chaos_link_rule *rule,
                     char *error, size_t error_size);
/* Resets (RST) the connections of a link on both sides; what was under way is gone. The rule stays. */
bool chaos_links_cut(struct chaos_links *links, size_t client, size_t node, char *error, size_t error_size);
/* Ends the process, and waits for it unless the caller already has. A second time it does nothing. */
void chaos_links_stop(struct chaos_links *links);

#endif
