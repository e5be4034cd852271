/* A server's changes of state: the reason, the end of a connection, the wait for the next try. */
#ifndef REDLOCK_SERVER_PHASE_H
#define REDLOCK_SERVER_PHASE_H

#include "server/server_state.h"

/* Sets the phase and why the server is not READY, without an end. Takes over the text. */
void redlock_phase_set(struct redlock_server *server, enum redlock_server_phase phase, struct redlock_text *why);

/* The try or the connection has failed: closes it with RST (R9), answers what is in flight, waits
 * for the next try; UNUSABLE if the settings of TLS must change. Takes over the text. */
void redlock_phase_lost(struct redlock_server *server, struct redlock_text *why);

/* The same, but the node may not vote until the server changes (R18). */
void redlock_phase_unusable(struct redlock_server *server, struct redlock_text *why);

/* The text for a node that is the same server as `rival` (R18). */
struct redlock_text *redlock_phase_twice_text(const char *rival);

#endif
