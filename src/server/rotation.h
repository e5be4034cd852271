/* New credentials for a server that runs: they replace the old ones when it accepts them. */
#ifndef REDLOCK_SERVER_ROTATION_H
#define REDLOCK_SERVER_ROTATION_H

#include "server/server_state.h"

/* See redlock_node_offer(). */
void redlock_rotation_offer(struct redlock_server *server, struct redlock_credentials *credentials);

void redlock_rotation_clear(struct redlock_rotation *rotation);

/* Whether the server has not accepted what was given last. */
bool redlock_rotation_is_pending(const struct redlock_rotation *rotation);

/* The steps of a connection. */
/* A handshake is about to begin: with these. */
const struct redlock_credentials *redlock_rotation_greets(struct redlock_server *server);
void redlock_rotation_ready(struct redlock_server *server); /* it is done */
void redlock_rotation_ends(struct redlock_server *server);  /* it failed, or the connection ends */
void redlock_rotation_was_withdrawn(struct redlock_server *server);
/* The handshake's AUTH was refused. Returns true if it is to be tried again with the old ones. */
bool redlock_rotation_goes_back(struct redlock_server *server, const char *reason);
/* The same for a spare. The connection beside it goes on as it is. */
const struct redlock_credentials *redlock_rotation_spare_greets(struct redlock_server *server);
void redlock_rotation_spare_refused(struct redlock_server *server);
void redlock_rotation_spare_accepted(struct redlock_server *server); /* and is the connection now */
/* The reply to AUTH on an open connection, or to the PING behind it. Returns false if it is
 * neither. */
bool redlock_rotation_reply(struct redlock_server *server, const struct redlock_inflight_entry *entry, bool in_time,
                            const struct redlock_reply *reply);

#endif
