/* The model of the grants of a queue on every node: who may hold the lock, and until when. */
#ifndef MODEL_QUEUE_H
#define MODEL_QUEUE_H

#include <stdbool.h>

#include "search.h"

/* The bugs that the model of the grants can have. */
enum queue_bug {
    QUEUE_RIGHT,
    QUEUE_SAME_TOKEN,    /* a yield keeps its token */
    QUEUE_BOUND_ARRIVAL, /* the bound of a push is the time when it arrives */
    /* A push has no serial: its bound is the last WAIT that the node answered. */
    QUEUE_NO_SERIALS,
    QUEUE_NEWEST_BOUND, /* the deadline follows the newest of the bounds that are counted */
    QUEUE_LATE_BACKING, /* a late push adds backing whatever its bound is */
    QUEUE_STALE_SERVED  /* a node serves an entry that is stale */
};

struct queue_config {
    unsigned nodes;
    unsigned lost; /* more nodes, which do not answer: they count only for the quorum */
    unsigned clients;
    unsigned ttl; /* ticks */
    /* Ticks until an entry is stale; clients may die, and a WAIT is not late; 0: none of this. */
    unsigned stale;
    bool in_order; /* a node executes no WAIT of a client after a younger one */
    enum queue_bug bug;
};

/* The limits of the model. */
enum { QUEUE_NODES_MAX = 5, QUEUE_LOST_MAX = 2, QUEUE_CLIENTS_MAX = 3, QUEUE_TICKS_MAX = 3, QUEUE_STALE_MAX = 2 };

extern const struct model queue_model;

#endif
