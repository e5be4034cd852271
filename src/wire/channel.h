/* The channels that a manager hears beside its own: one for each resource that is observed. */
#ifndef REDLOCK_WIRE_CHANNEL_H
#define REDLOCK_WIRE_CHANNEL_H

#include "core/quorum.h"

#define REDLOCK_LEADER_CHANNEL "redlock:leader:" /* the lock's key follows */

/* The group owns it; the nodes note what became of it. */
struct redlock_channel {
    struct redlock_channel *next;
    redlock_nodes heard;   /* confirmed by the node on its present connection */
    redlock_nodes refused; /* not permitted there */
    unsigned users;
    char name[]; /* terminated */
};

struct redlock_channels {
    struct redlock_channel *first;
};

#endif
