/* From an address to a server that is READY: the dial, and the second part of the handshake (R16,
 * R18). */
#ifndef REDLOCK_SERVER_CONNECT_H
#define REDLOCK_SERVER_CONNECT_H

#include "server/server_state.h"

/* Sets up the dial. Returns 0 or REDLOCK_ERR_NO_MEMORY. */
int redlock_connect_init(struct redlock_server *server);

/* Begins a try: the server is NEW, WAITING or UNUSABLE, or READY or STALLED and needs a spare. */
void redlock_connect_begin(struct redlock_server *server);

/* INTRODUCING: a reply has come. */
void redlock_connect_reply(struct redlock_server *server, const struct redlock_reply *reply)
    __attribute__((noinline, cold));

/* NEW, INTRODUCING */
void redlock_connect_due(struct redlock_server *server, int64_t now_ns);

#endif
