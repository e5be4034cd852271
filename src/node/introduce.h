/* The second part of a handshake: from a server that is known to a node that is READY (R18). */
#ifndef REDLOCK_NODE_INTRODUCE_H
#define REDLOCK_NODE_INTRODUCE_H

#include "node/node_state.h"

/* INTRODUCING: a reply has come. */
void redlock_introduce_reply(struct redlock_node *node, const struct redlock_reply *reply);

/* The handshake, in whichever part, is over or has failed. */
void redlock_introduce_end(struct redlock_node *node, const struct redlock_handshake *handshake,
                           enum redlock_handshake_state state);

/* The handshake is done. One server under two names would have two votes (R18): of such nodes the
 * lower index stays, and becomes READY once the other one has given way. */
void redlock_introduce_compare(struct redlock_node *node);

#endif
