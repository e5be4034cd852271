/* The model of the order in a queue on every node: who comes after whom. */
#ifndef MODEL_QUEUE_ORDER_H
#define MODEL_QUEUE_ORDER_H

#include <stdbool.h>

#include "search.h"

/* The bugs that the model can have. */
enum order_bug {
    ORDER_RIGHT,
    ORDER_OWN_CLOCK,    /* a ticket is the client's own clock, which may be slow */
    ORDER_STAYS_QUEUED, /* a release does not leave the queue */
    ORDER_TRY_KEEPS,    /* the release of a lost try hands over to nobody */
    ORDER_ENTERS,       /* the WAIT after a lost try takes no free lock */
    ORDER_NEVER_YIELDS, /* a waiter that has some nodes keeps them */
    ORDER_UNANSWERED,   /* a push for a token that was released is not answered */
    ORDER_OVER_YIELDS   /* no bug: a waiter that yields claims the place that it had before */
};

struct order_config {
    unsigned nodes;
    unsigned lost;    /* more nodes, which do not answer: they count only for the quorum */
    unsigned waiters; /* each wants the lock once */
    unsigned breaks;  /* how often a connection breaks, which may leave a WAIT behind */
    unsigned tries;   /* so many of the last waiters try first, before they queue */
    enum order_bug bug;
};

/* The limits of the model. */
enum { ORDER_NODES_MAX = 5, ORDER_LOST_MAX = 2, ORDER_WAITERS_MAX = 3, ORDER_BREAKS_MAX = 3 };

extern const struct model order_model;

#endif
