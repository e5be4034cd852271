/* One non-blocking socket. */
#include "server/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* A NAT or a firewall on the way forgets no flow that is used so often, and an idle flow that has
 * died is found in half a minute. One in use is found by its timeouts (server/spare.h), long before
 * a TCP_USER_TIMEOUT could. */
#define KEEPALIVE_IDLE_S     15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES     3

static void set(int fd, int level, int option, int value) {
    /* These options help, but the connection works without them. */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

int redlock_stream_open(const struct sockaddr *address, socklen_t size) {
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    if (address->sa_family != AF_UNIX) {
        set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
        set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
        set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    }
    if (connect(fd, address, size) != 0 && errno != EINPROGRESS && errno != EINTR) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    return fd;
}

/* When nobody listens on a port, TCP may give a socket that same port and connect it to itself. It
 * would then block the port for the returning server. */
static bool is_its_own_peer(int fd) {
    struct sockaddr_storage ours = {0}, theirs = {0};
    socklen_t ours_size = sizeof ours, theirs_size = sizeof theirs;
    return getsockname(fd, (struct sockaddr *)&ours, &ours_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&theirs, &theirs_size) == 0 && ours.ss_family != AF_UNIX &&
           ours_size == theirs_size && memcmp(&ours, &theirs, ours_size) == 0;
}

int redlock_stream_connected(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        return errno;
    }
    return error == 0 && is_its_own_peer(fd) ? ECONNREFUSED : error;
}

void redlock_stream_reset(int fd) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    (void)close(fd);
}
