/* One server: its connections, and its requests with their timeout, stall and reconnect. */
#ifndef REDLOCK_SERVER_SERVER_H
#define REDLOCK_SERVER_SERVER_H

#include "server/server_state.h"

/* Of a server that is all zero. Takes over the address on success. Starts to connect in the next
 * turn of the loop. Free it, too, if this returns false: without memory. */
bool redlock_server_init(struct redlock_server *server, unsigned index, struct redlock_address *address,
                         const struct redlock_server_options *options, const struct redlock_reactor *reactor,
                         const struct redlock_server_callbacks *callbacks);

/* Closes the connections and answers nothing in flight. In a forked child, set `forked`: it only
 * closes descriptors. */
void redlock_server_free(struct redlock_server *server, bool forked);

#endif
