/* What comes before the first request: who we are, who the server is, whether it may vote (R9,
 * R18). */
#ifndef REDLOCK_SERVER_HANDSHAKE_H
#define REDLOCK_SERVER_HANDSHAKE_H

#include "server/handshake_state.h"

/* Puts the first commands into the outbox. The caller has set `told`; the rest begins anew. */
enum redlock_handshake_state redlock_handshake_start(struct redlock_handshake *handshake,
                                                     struct redlock_outbox *outbox);

enum redlock_handshake_state redlock_handshake_reply(struct redlock_handshake *handshake,
                                                     const struct redlock_reply *reply, struct redlock_outbox *outbox);

/* Returns whether the server has answered, but not INFO. */
bool redlock_handshake_awaits_info(const struct redlock_handshake *handshake);

/* The parts that a second connection of the server needs. */

/* Sets the words of AUTH. Returns false if there is no user and no password. */
bool redlock_handshake_auth(const struct redlock_credentials *credentials, const char *words[4]);

/* Returns whether the server does not let us use the command, or does not have it. */
bool redlock_handshake_refused(const struct redlock_reply *reply);

#endif
