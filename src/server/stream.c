/* One non-blocking socket, and what a forked child gets in its place. */
#include "server/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* A NAT or a firewall on the way forgets no flow that is used so often, and an idle flow that has
 * died is found in half a minute. One in use is found by its timeouts (server/spare.h), long before
 * a TCP_USER_TIMEOUT could. */
#define KEEPALIVE_IDLE_S     15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES     3

/* The only global state of the library. pthread_atfork() tells its handlers nothing: they must find
 * the connections of all managers here, whichever thread forks. The mutex is held across a fork, so
 * the child gets a list that is whole, and no connection is open but unlisted. No callback and no
 * blocking call runs under it. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct redlock_list connections = REDLOCK_LIST_EMPTY(connections);
/* A socket that leads nowhere, while the list has members. It is opened before: a child may be out
 * of descriptors, and may only do what is safe in a signal handler. */
static int spare = -1;

static void lock(void) {
    const int error = pthread_mutex_lock(&mutex);
    assert(error == 0);
    (void)error;
}

static void unlock(void) {
    const int error = pthread_mutex_unlock(&mutex);
    assert(error == 0);
    (void)error;
}

static void close_spare(void) {
    if (redlock_list_is_empty(&connections) && spare >= 0) {
        (void)close(spare);
        spare = -1;
    }
}

static void in_child(void) {
    struct redlock_list_entry *first;
    while ((first = redlock_list_pop(&connections))) {
        (void)dup3(spare, REDLOCK_CONTAINER(first, struct redlock_stream, entry)->fd, O_CLOEXEC);
    }
    close_spare();
    unlock();
}

/* Without memory for it, children share connections; locks do not depend on that. A library that is
 * unloaded takes its handlers along. */
static void begin(void) {
    (void)pthread_atfork(lock, unlock, in_child);
}

static void set(int fd, int level, int option, int value) {
    /* These options help, but the connection works without them. */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/* Returns the descriptor, or a negative errno. */
static int open_socket(const struct sockaddr *address, socklen_t size) {
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

int redlock_stream_open(struct redlock_stream *stream, const struct sockaddr *address, socklen_t size) {
    assert(stream->fd < 0);
    (void)pthread_once(&once, begin);
    lock();
    int fd = open_socket(address, size);
    if (fd >= 0 && spare < 0) {
        spare = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    if (fd >= 0 && spare < 0) {
        const int error = errno;
        (void)close(fd);
        fd = -error;
    }
    if (fd >= 0) {
        stream->fd = fd;
        redlock_list_prepend(&connections, &stream->entry);
    }
    unlock();
    return fd < 0 ? -fd : 0;
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

void redlock_stream_move(struct redlock_stream *to, struct redlock_stream *from) {
    lock();
    to->fd = from->fd;
    from->fd = -1;
    if (redlock_list_is_in(&from->entry)) {
        redlock_list_prepend(&connections, &to->entry);
        redlock_list_remove(&from->entry);
    }
    unlock();
}

void redlock_stream_close(struct redlock_stream *stream, bool resets) {
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (stream->fd < 0) {
        return;
    }
    lock();
    if (redlock_list_is_in(&stream->entry)) {
        redlock_list_remove(&stream->entry);
    }
    if (resets) {
        (void)setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    (void)close(stream->fd);
    stream->fd = -1;
    close_spare();
    unlock();
}
