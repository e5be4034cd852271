/* A state of the model of the grants: nodes, clients, and what is under way between them. */
#ifndef MODEL_QUEUE_STATE_H
#define MODEL_QUEUE_STATE_H

#include "queue.h"

/* The key of a node: none, the present token of a client, or a token that its owner has given
 * up. */
enum { FREE, FIRST_OWNER, LEFT_BEHIND = FIRST_OWNER + QUEUE_CLIENTS_MAX };

/* A WAIT of a client is known by its age: the ticks since it was sent. A client sends one in a tick
 * at most, so a younger WAIT has a higher serial. These fields are an age and one; 0 is none. */
struct queue_link {
    unsigned sent;  /* bit a: the WAIT of age a is under way */
    unsigned entry; /* the WAIT that the node has in its queue */
    /* The youngest WAIT that the node granted, whether or not its client has heard it. */
    unsigned grant;
    unsigned backs;    /* HELD: the client counts on this node until its deadline */
    unsigned answered; /* QUEUE_NO_SERIALS: the youngest WAIT that was answered */
    unsigned push;     /* some bugs: a push is under way */
    unsigned release;  /* QUEUE_SAME_TOKEN: the RELEASE of a yield is under way */
};

struct queue_client {
    unsigned left;   /* ticks to its deadline; 0: it does not hold */
    unsigned waited; /* it has sent a WAIT in this tick */
    unsigned dead;   /* ticks since it died, and one; 0: it is alive */
    struct queue_link links[QUEUE_NODES_MAX];
};

struct queue_node {
    unsigned owner;
    unsigned left; /* ticks that its key lives */
};

struct queue_state {
    struct queue_client clients[QUEUE_CLIENTS_MAX];
    struct queue_node nodes[QUEUE_NODES_MAX];
};

unsigned queue_key_words(const void *config);
void queue_pack(const void *config, const void *state, uint64_t *key);
void queue_unpack(const void *config, const uint64_t *key, void *state);

#endif
