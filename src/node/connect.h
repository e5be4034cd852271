/* From an address to a node that is READY: the dial, and the second part of the handshake (R16,
 * R18). */
#ifndef REDLOCK_NODE_CONNECT_H
#define REDLOCK_NODE_CONNECT_H

#include "node/node_state.h"

/* Sets up the dial. Returns 0 or REDLOCK_ERR_NO_MEMORY. */
int redlock_connect_init(struct redlock_node *node);

/* Begins a try: the node is NEW, WAITING or UNUSABLE, or READY or STALLED and needs a spare. */
void redlock_connect_begin(struct redlock_node *node);

/* INTRODUCING: a reply has come. */
void redlock_connect_reply(struct redlock_node *node, const struct redlock_reply *reply);

/* NEW, INTRODUCING */
void redlock_connect_due(struct redlock_node *node, int64_t now_ns);

#endif
