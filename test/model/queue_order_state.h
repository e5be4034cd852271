/* A state of the model of the order: nodes, clients, and what is under way between them. */
#ifndef MODEL_QUEUE_ORDER_STATE_H
#define MODEL_QUEUE_ORDER_STATE_H

#include "queue_order.h"

/* Whose token has the key of a node. The holder at the start has released the lock, but its RELEASE
 * is still under way to the nodes that have its key. */
enum { FREE, FIRST_HOLDER, FIRST_OWNER };

/*
 * OUT      begin                         → TRYING  SET to all nodes
 *          begin                         → QUEUED  TAKE to all nodes
 * TRYING   q nodes are ours              → HELD
 *          q nodes cannot be ours        → QUEUED  RELEASE of the token; ENTER, under a fresh one
 * QUEUED   q nodes are ours              → HELD
 *          all answered, no quorum       → QUEUED  TAKE to all nodes
 *          all answered, ours are few    → QUEUED  a yield: RELEASE and TAKE, under a fresh token
 * HELD     release                       → ENDED   RELEASE to all nodes
 */
enum phase { OUT, TRYING, QUEUED, HELD, ENDED };

/* What is under way to a node. WAIT is ENTER (it takes no lock that is free) or TAKE. */
enum request { NONE, SET, ENTER, TAKE, RELEASE, KEEP };
enum { REQUESTS_MAX = 4, REQUEST_BITS = 3, REQUEST_MASK = 7 };

/* An entry of the present token in the queue of a node, and one of a token that was released. */
enum { ENTRY = 1, GHOST = 2 };

/* A WAIT that was left behind on an old connection: of the present token, or of a released one. */
enum late { LATE_NONE, LATE_PRESENT, LATE_GHOST };

struct order_link {
    unsigned requests; /* REQUEST_BITS each, the next one lowest */
    unsigned entries;
    unsigned late;
};

struct order_client {
    unsigned phase;
    /* ORDER_OWN_CLOCK: its ticket is before all tickets of clients whose clocks are right. */
    unsigned slow;
    /* Bit i: client i was queued on a quorum when this one began, and so comes first. */
    unsigned due;
    struct order_link links[ORDER_NODES_MAX];
};

struct order_node {
    unsigned owner;
    unsigned ghost; /* the owner's token was released before it was granted */
};

struct order_state {
    struct order_client clients[ORDER_WAITERS_MAX];
    struct order_node nodes[ORDER_NODES_MAX];
    unsigned breaks;
    unsigned wrong; /* enum wrong */
};

enum wrong { NOTHING_WRONG, STILL_QUEUED, PASSED_OVER };

enum yields { YIELDS_NOT, YIELDS_TO_EARLIER, YIELDS_TO_QUORUM };

unsigned order_quorum(const struct order_config *config);
/* Whether a release of an earlier token is still under way to this node. */
bool order_releases(const struct order_link *link);
bool order_is_idle(const struct order_config *config, const struct order_client *client);
/* Nodes that have the present token of the client: as their key, and in their queue. */
unsigned order_owned_by(const struct order_config *config, const struct order_state *state, unsigned number);
unsigned order_queued_by(const struct order_config *config, const struct order_client *client);
/* Whether the ticket of client `a` is lower. */
bool order_is_before(const struct order_state *state, unsigned a, unsigned b);
/* Whether the WAIT of a client that is queued would change anything now. */
bool order_waits_again(const struct order_config *config, const struct order_state *state, unsigned number);
/* What a look finds. */
enum yields order_yields(const struct order_config *config, const struct order_state *state, unsigned number);
/* Clients wait, and nothing is under way that could end that. */
bool order_is_stuck(const struct order_config *config, const struct order_state *state);

unsigned order_key_words(const void *config);
void order_pack(const void *config, const void *state, uint64_t *key);
void order_unpack(const void *config, const uint64_t *key, void *state);

#endif
