/* Reads and writes on an open connection, and a server that stalls (R6, R7, R11, R17, R20). */
#ifndef REDLOCK_SERVER_TRAFFIC_H
#define REDLOCK_SERVER_TRAFFIC_H

#include "server/server_state.h"

/* For the watch of the server's connection: INTRODUCING, READY, STALLED. */
void redlock_traffic_io(struct redlock_watch *watch, unsigned events);
void redlock_traffic_flush(struct redlock_watch *watch);

/* Any phase. */
void redlock_traffic_due(struct redlock_server *server, int64_t now_ns);

#endif
