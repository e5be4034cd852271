/* A state of the model of the lock: clients, nodes, and what is under way between them. */
#ifndef MODEL_LOCK_STATE_H
#define MODEL_LOCK_STATE_H

#include <stdbool.h>

#include "lock.h"

enum { LOCK_CLIENTS = 2 };

/* The key of a node: none, the present token of client 0 or 1, or a token that its owner has given
 * up. */
enum { FREE, FIRST_OWNER, LEFT_BEHIND = FIRST_OWNER + LOCK_CLIENTS };

/*
 * IDLE       begin                             → ACQUIRING  SET to the nodes that it may ask,
 *                                                           under a fresh token
 * ACQUIRING  q heard GRANTED, deadline not yet → HELD
 *            deadline, given up                → IDLE
 * HELD       extend                            → EXTENDING  EXTEND to all nodes with which it
 *                                                           is connected
 *            heal                              → HELD       SET to one node, before the deadline
 *                                                           that the last round had met
 * EXTENDING  q heard that matched              → HELD       the deadline anew, from this
 *                                                           round's start
 *            given up                          → HELD       the old deadline stands
 * HELD, EXTENDING  deadline, release           → IDLE       its keys are left behind, until
 *                                                           released or expired
 */
enum phase { IDLE, ACQUIRING, HELD, EXTENDING };

/* Of the present round. A client looks at the votes only when they decide, so it need not hear them
 * one by one. */
enum vote { VOTE_NONE, VOTE_ASKED, VOTE_GRANTED };

/* How a client stands with a node. `sees` is UNSEEN from a restart until it has connected to the
 * new run; then the ticks of quarantine that are left, by its own clock. */
struct lock_link {
    unsigned vote; /* VOTE_ASKED: an EXTEND is under way; that of an acquire is the SET */
    unsigned set;  /* a SET is under way: of the acquire, or to heal */
    unsigned sees;
};

struct lock_client {
    unsigned phase;
    unsigned left;      /* ticks to the deadline; while ACQUIRING, to what it would be */
    unsigned next_left; /* EXTENDING: to the deadline of the round under way */
    unsigned heal_left; /* ticks in which it may heal */
    struct lock_link links[LOCK_NODES_MAX];
};

struct lock_node {
    unsigned owner;
    unsigned left;    /* ticks that its key lives */
    unsigned stepped; /* its clock was stepped in this run */
    /* LOCK_MARKER: the ticks since the marker was set, and one; 0: there is none. */
    unsigned marker;
};

struct lock_state {
    struct lock_client clients[LOCK_CLIENTS];
    struct lock_node nodes[LOCK_NODES_MAX];
    unsigned restarts, steps;
};

/* How a client sees a run that it has not met. */
static inline unsigned lock_unseen(const struct lock_config *config) {
    return config->ttl_max + 1;
}

static inline bool lock_has_markers(const struct lock_config *config) {
    return config->bug == LOCK_MARKER || config->bug == LOCK_MARKER_OLD_COPY;
}

unsigned lock_key_words(const void *config);
void lock_pack(const void *config, const void *state, uint64_t *key);
void lock_unpack(const void *config, const uint64_t *key, void *state);

#endif
