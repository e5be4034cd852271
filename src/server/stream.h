/* One non-blocking socket, which a forked child does not keep: open, write, read, close. */
#ifndef REDLOCK_SERVER_STREAM_H
#define REDLOCK_SERVER_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/list.h"

/*
 * A server sees a connection until its last copy is closed. fork() copies them all, and
 * close-on-exec is of no use where a child does not call exec. Such a child would keep the
 * subscriptions of a parent that has died, and the nodes would go on handing locks to the dead. So
 * in the child, something else takes the place of each connection, under its number: the child may
 * close it, as if it were the connection.
 */
struct redlock_stream {
    int fd; /* -1 for none */
    struct redlock_list_entry entry;
};

/* Starts to connect. Returns 0 or an errno. It must stay where it is until it is closed or
 * moved. */
int redlock_stream_open(struct redlock_stream *stream, const struct sockaddr *address, socklen_t size);

/* Returns the result of the connect once the descriptor is writable: 0 or an errno. */
int redlock_stream_connected(int fd);

/* Like send() and recv(), without SIGPIPE (R19) and EINTR. */
static inline ssize_t redlock_stream_write(int fd, const char *bytes, size_t size) {
    ssize_t sent;
    do {
        sent = send(fd, bytes, size, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

static inline ssize_t redlock_stream_read(int fd, char *buffer, size_t size) {
    ssize_t got;
    do {
        got = recv(fd, buffer, size, 0);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* The socket is `to`'s from now on. */
void redlock_stream_move(struct redlock_stream *to, struct redlock_stream *from);

/* Does nothing if it is closed. `resets`: with RST, so that the server drops what it has not read
 * yet (R9). In a child it closes what took the place. */
void redlock_stream_close(struct redlock_stream *stream, bool resets);

#endif
