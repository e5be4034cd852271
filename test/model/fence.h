/* The model of the fencing protocol: docs/protocols.md, "Fencing tokens". */
#ifndef MODEL_FENCE_H
#define MODEL_FENCE_H

#include <stdbool.h>

#include "search.h"
#include "setup.h"

/* The bugs that the model can have. */
enum fence_bug {
    FENCE_RIGHT,
    FENCE_INCR,          /* each node counts on its own; the token is the highest answer */
    FENCE_NO_WRITE_BACK, /* the slow path takes the highest + 1 and tells no node */
    FENCE_ACCEPTS_EQUAL, /* a node accepts a proposal that equals its counter */
    FENCE_ACKS_EQUAL,    /* a node acknowledges a write-back of the number that it already has */
    FENCE_ACKS_UNLOCKED, /* a node acknowledges a write-back whoever holds the lock */
    FENCE_ACKS_ANY       /* both of these */
};

struct fence_config {
    unsigned nodes;
    /* A letter each: "AAB": two of client A, one after the other, and one of client B. */
    const char *attempts;
    /* Clocks are anything: a proposal is one of so many numbers, or the client's next one. */
    unsigned proposals;
    unsigned rounds;   /* of write-backs in one attempt: one, and again when beaten */
    unsigned losses;   /* how often a node loses its counter and its key */
    bool collide;      /* numbers have no digits of their own for each client */
    bool in_turn;      /* a client begins when all attempts of the one before are GRANTED */
    bool right_clocks; /* each proposal is above every number that anyone has used before */
    struct setups setups;
    enum fence_bug bug;
};

/* The limits of the model. */
enum {
    FENCE_NODES_MAX = 6,
    FENCE_ATTEMPTS_MAX = 4,
    FENCE_ROUNDS_MAX = 2,
    FENCE_LOSSES_MAX = 3,
    FENCE_PROPOSALS_MAX = 9
};

extern const struct model fence_model;

#endif
