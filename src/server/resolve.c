/* Name lookups outside the loop's thread. */
#include "server/resolve.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

struct redlock_lookup {
    atomic_int references; /* the server's and the thread's */
    atomic_bool done;      /* set last by the thread: the server may read what follows */
    int fd;
    char *host;
    char port[8];
    struct redlock_endpoints endpoints;
    const char *error;
};

/* Returns NULL, or why the lookup failed as a static string. */
static const char *look_up(const char *host, const char *port, int flags, struct redlock_endpoints *endpoints) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    endpoints->count = 0;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0) {
        return code == EAI_SYSTEM ? "the system's resolver failed" : gai_strerror(code);
    }
    for (struct addrinfo *info = found; info != NULL && endpoints->count < REDLOCK_ENDPOINTS_MAX;
         info = info->ai_next) {
        struct redlock_endpoint *endpoint = &endpoints->list[endpoints->count];
        if (info->ai_addrlen > sizeof endpoint->address) {
            continue;
        }
        memcpy(&endpoint->address, info->ai_addr, info->ai_addrlen);
        endpoint->size = info->ai_addrlen;
        endpoints->count++;
    }
    freeaddrinfo(found);
    return endpoints->count > 0 ? NULL : "the name has no address";
}

bool redlock_resolve_literal(const struct redlock_address *address, struct redlock_endpoints *endpoints) {
    if (address->kind == REDLOCK_ADDRESS_UNIX) {
        struct sockaddr_un path = {.sun_family = AF_UNIX};
        size_t size = strlen(address->host) + 1;
        assert(size <= sizeof path.sun_path);
        memcpy(path.sun_path, address->host, size);
        memcpy(&endpoints->list[0].address, &path, sizeof path);
        endpoints->list[0].size = sizeof path;
        endpoints->count = 1;
        return true;
    }
    char port[8];
    (void)snprintf(port, sizeof port, "%u", (unsigned)address->port);
    return look_up(address->host, port, AI_NUMERICHOST | AI_NUMERICSERV, endpoints) == NULL;
}

static void drop_one(struct redlock_lookup *lookup) {
    const int references = atomic_fetch_sub(&lookup->references, 1);
    assert(references > 0);
    if (references != 1) {
        return;
    }
    (void)close(lookup->fd);
    free(lookup->host);
    free(lookup);
}

static void *run(void *data) {
    struct redlock_lookup *lookup = data;
    lookup->error = look_up(lookup->host, lookup->port, AI_NUMERICSERV, &lookup->endpoints);
    atomic_store(&lookup->done, true);
    uint64_t one = 1;
    ssize_t told = write(lookup->fd, &one, sizeof one);
    (void)told; /* cannot fail: this is the first write to the eventfd */
    drop_one(lookup);
    return NULL;
}

/* Block all signals in the thread, so that the program's handlers do not run on it. */
static int start_thread(struct redlock_lookup *lookup) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, old;
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return error;
    }
    error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (error == 0) {
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &old);
        error = pthread_create(&thread, &attributes, run, lookup);
        (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    return error;
}

struct redlock_lookup *redlock_lookup_start(const char *host, uint16_t port, int *error) {
    struct redlock_lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL) {
        *error = ENOMEM;
        return NULL;
    }
    (void)snprintf(lookup->port, sizeof lookup->port, "%u", (unsigned)port);
    lookup->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    *error = errno;
    lookup->host = strdup(host);
    atomic_init(&lookup->references, 2);
    if (lookup->fd >= 0) {
        *error = lookup->host == NULL ? ENOMEM : start_thread(lookup);
        if (*error == 0) {
            return lookup;
        }
        (void)close(lookup->fd);
    }
    free(lookup->host);
    free(lookup);
    return NULL;
}

int redlock_lookup_fd(const struct redlock_lookup *lookup) {
    return lookup->fd;
}

bool redlock_lookup_done(const struct redlock_lookup *lookup, struct redlock_endpoints *endpoints, const char **error) {
    const bool done = atomic_load(&lookup->done);
    if (done) {
        *error = lookup->error;
    }
    if (done && lookup->error == NULL) {
        assert(lookup->endpoints.count > 0);
        *endpoints = lookup->endpoints;
    }
    return done;
}

void redlock_lookup_drop(struct redlock_lookup *lookup, bool forked) {
    if (lookup == NULL) {
        return;
    }
    if (forked) {
        atomic_store(&lookup->references, 1);
    }
    drop_one(lookup);
}
