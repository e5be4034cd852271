/* What a forked child gets in place of its parent's connections. */
#include "server/unshared.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "server/stream.h"

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
        (void)dup3(spare, REDLOCK_CONTAINER(first, struct redlock_unshared, entry)->fd, O_CLOEXEC);
    }
    close_spare();
    unlock();
}

/* Without memory for it, children share connections; locks do not depend on that. A library that is
 * unloaded takes its handlers along. */
static void begin(void) {
    (void)pthread_atfork(lock, unlock, in_child);
}

int redlock_unshared_open(struct redlock_unshared *unshared, const struct sockaddr *address, socklen_t size) {
    (void)pthread_once(&once, begin);
    lock();
    int fd = redlock_stream_open(address, size);
    if (fd >= 0 && spare < 0) {
        spare = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    if (fd >= 0 && spare < 0) {
        const int error = errno;
        (void)close(fd);
        fd = -error;
    }
    if (fd >= 0) {
        unshared->fd = fd;
        redlock_list_prepend(&connections, &unshared->entry);
    }
    unlock();
    return fd;
}

void redlock_unshared_move(struct redlock_unshared *to, struct redlock_unshared *from) {
    lock();
    if (redlock_list_is_in(&from->entry)) {
        to->fd = from->fd;
        redlock_list_prepend(&connections, &to->entry);
        redlock_list_remove(&from->entry);
    }
    unlock();
}

void redlock_unshared_close(struct redlock_unshared *unshared, int fd, bool resets) {
    lock();
    if (redlock_list_is_in(&unshared->entry)) {
        redlock_list_remove(&unshared->entry);
    }
    if (resets) {
        redlock_stream_reset(fd);
    } else {
        (void)close(fd);
    }
    close_spare();
    unlock();
}
