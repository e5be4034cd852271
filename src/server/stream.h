/* One non-blocking socket: open, write, read, close. */
#ifndef REDLOCK_SERVER_STREAM_H
#define REDLOCK_SERVER_STREAM_H

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Starts to connect. Returns the descriptor, or a negative errno. */
int redlock_stream_open(const struct sockaddr *address, socklen_t size);

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

/* Closes with RST: the server drops what it has not read yet (R9). */
void redlock_stream_reset(int fd);

#endif
