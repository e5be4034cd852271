/* Connections that a forked child does not keep open. */
#ifndef REDLOCK_SERVER_UNSHARED_H
#define REDLOCK_SERVER_UNSHARED_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/list.h"

/*
 * A server sees a connection until its last copy is closed. fork() copies them all, and
 * close-on-exec is of no use where a child does not call exec. Such a child would keep the
 * subscriptions of a parent that has died, and the nodes would go on handing locks to the dead. So
 * in the child, something else takes the place of each connection, under its number: the child may
 * close it, as if it were the connection.
 */
struct redlock_unshared {
    struct redlock_list_entry entry;
    int fd;
};

/* As redlock_stream_open(). The member must stay where it is until it is closed. */
int redlock_unshared_open(struct redlock_unshared *unshared, const struct sockaddr *address, socklen_t size);

/* The connection is `to`'s from now on. */
void redlock_unshared_move(struct redlock_unshared *to, struct redlock_unshared *from);

/* As redlock_stream_reset(), or a plain close. In a child it closes what took the place. */
void redlock_unshared_close(struct redlock_unshared *unshared, int fd, bool resets);

#endif
