/* The link proxy's process: its loop, a listener a link, and the conductor's commands. */
#include "proxy.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proxy_connection.h"

enum {
    BACKLOG = 128,
    ACCEPTS_MAX = 16,     /* in one turn of the loop, from one listener */
    FILES_OTHER = 32,     /* the loop's, the control socket, standard error, … */
    FILES_A_LINK = 1 + 4, /* a listener, and two connections: while one replaces another, both stand */
};

struct chaos_proxy {
    struct chaos_proxy_shared shared;
    size_t clients, nodes;
    ev_io control;
    struct chaos_proxy_link *links;
};

static struct chaos_proxy_link *link_of(struct chaos_proxy *proxy, size_t client, size_t node) {
    return &proxy->links[client * proxy->nodes + node];
}

/* Raises the limit of open files as far as it may. False with a sentence if that is not enough. */
static bool have_files(const struct chaos_proxy *proxy, char *error, size_t error_size) {
    struct rlimit files;
    rlim_t needed = FILES_OTHER + FILES_A_LINK * proxy->clients * proxy->nodes;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        snprintf(error, error_size, "cannot ask for the limit of open files: %s", strerror(errno));
        return false;
    }
    if (files.rlim_max != RLIM_INFINITY && files.rlim_max < needed) {
        snprintf(error, error_size,
                 "the links of %zu clients and %zu nodes need %llu open files (a listener and two connections each), "
                 "and %llu "
                 "are allowed: raise the hard limit (`ulimit -Hn`), or take fewer clients or nodes",
                 proxy->clients, proxy->nodes, (unsigned long long)needed, (unsigned long long)files.rlim_max);
        return false;
    }
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        snprintf(error, error_size, "cannot raise the limit of open files: %s", strerror(errno));
        return false;
    }
    return true;
}

/* The next connection that waits; -1 with errno. */
static int next_client(const struct chaos_proxy_link *link) {
    return accept4(link->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void on_listener(struct ev_loop *loop, ev_io *listener, int events) {
    struct chaos_proxy_link *link = listener->data;
    (void)events;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        if (link->connection_count >= CHAOS_LINK_CONNECTIONS_MAX) {
            ev_io_stop(loop, listener); /* until one of them is closed; the others wait in the kernel */
            return;
        }
        int client = next_client(link);
        if (client >= 0) {
            chaos_connection_open(link, client);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            /* EMFILE and the like: the listener stays readable, and asking on would only spin. */
            chaos_proxy_complain(link, "accept a connection");
            ev_io_stop(loop, listener);
            ev_timer_again(loop, &link->shared->rested);
            return;
        }
    }
}

static void on_rested(struct ev_loop *loop, ev_timer *rested, int events) {
    struct chaos_proxy *proxy = rested->data;
    (void)events;
    ev_timer_stop(loop, rested);
    for (size_t i = 0; i < proxy->clients * proxy->nodes; i++) {
        if (proxy->links[i].connection_count < CHAOS_LINK_CONNECTIONS_MAX) {
            ev_io_start(loop, &proxy->links[i].listener);
        }
    }
}

/* A listener on a port that the kernel picks. -1 with errno. */
static int listen_anywhere(uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
        *port = ntohs(address.sin_port);
        return fd;
    }
    if (fd >= 0) {
        int reason = errno;
        (void)close(fd);
        errno = reason;
    }
    return -1;
}

static bool open_link(struct chaos_proxy *proxy, size_t client, size_t node, uint16_t upstream,
                      struct chaos_proxy_ready *ready) {
    struct chaos_proxy_link *link = link_of(proxy, client, node);
    int fd = listen_anywhere(&ready->ports[client][node]);
    if (fd < 0) {
        snprintf(ready->error, sizeof ready->error, "cannot listen on 127.0.0.1 for client %zu and node %zu: %s",
                 client + 1, node + 1, strerror(errno));
        return false;
    }
    *link = (struct chaos_proxy_link){.shared = &proxy->shared, .client = client, .node = node, .upstream = upstream};
    for (size_t i = 0; i < 2; i++) {
        link->lanes[i].random = (uint64_t)((client * proxy->nodes + node) * 2 + i);
    }
    ev_io_init(&link->listener, on_listener, fd, EV_READ);
    link->listener.data = link;
    ev_io_start(proxy->shared.loop, &link->listener);
    return true;
}

static void set_rule(struct chaos_proxy_link *link, const struct chaos_link_rule *rule) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    const bool holds[2] = {rule->hold_requests, rule->hold_replies};
    for (size_t i = 0; i < 2; i++) {
        chaos_lane_set(&link->lanes[i], holds[i], rule->delay_us, rule->jitter_us, rule->bytes_per_s, now_us);
    }
    for (struct chaos_connection *connection = link->connections, *next; connection != NULL; connection = next) {
        next = connection->next;
        chaos_connection_rule_changed(connection);
    }
}

/* Those that still wait in the kernel stand too, as their clients see it. */
static void cut(struct chaos_proxy_link *link) {
    for (int fd; (fd = next_client(link)) >= 0 || errno == EINTR || errno == ECONNABORTED;) {
        if (fd >= 0) {
            chaos_socket_reset(fd);
        }
    }
    while (link->connections != NULL) {
        chaos_connection_close(link->connections, true);
    }
}

static void on_control(struct ev_loop *loop, ev_io *control, int events) {
    struct chaos_proxy *proxy = control->data;
    struct chaos_proxy_command command;
    (void)events;
    ssize_t got = recv(control->fd, &command, sizeof command, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        ev_break(loop, EVBREAK_ALL);
        return;
    }
    assert(got == (ssize_t)sizeof command && command.client < proxy->clients && command.node < proxy->nodes);
    struct chaos_proxy_link *link = link_of(proxy, command.client, command.node);
    switch (command.order) {
    case CHAOS_ORDER_SET:
        set_rule(link, &command.rule);
        break;
    case CHAOS_ORDER_CUT:
        cut(link);
        break;
    }
    /* A conductor that does not take its answers has given up on them. */
    (void)send(control->fd, &command.number, sizeof command.number, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool open_all(struct chaos_proxy *proxy, const uint16_t *upstream, struct chaos_proxy_ready *ready) {
    if (!have_files(proxy, ready->error, sizeof ready->error)) {
        return false;
    }
    proxy->shared.loop = ev_loop_new(EVFLAG_NOENV);
    proxy->links = calloc(proxy->clients * proxy->nodes, sizeof *proxy->links);
    if (proxy->shared.loop == NULL || proxy->links == NULL) {
        snprintf(ready->error, sizeof ready->error, "the link proxy has no memory, or no event loop: %s",
                 strerror(errno));
        return false;
    }
    for (size_t client = 0; client < proxy->clients; client++) {
        for (size_t node = 0; node < proxy->nodes; node++) {
            if (!open_link(proxy, client, node, upstream[node], ready)) {
                return false;
            }
        }
    }
    return true;
}

static void close_all(struct chaos_proxy *proxy) {
    for (size_t i = 0; proxy->links != NULL && i < proxy->clients * proxy->nodes; i++) {
        struct chaos_proxy_link *link = &proxy->links[i];
        while (link->connections != NULL) {
            chaos_connection_close(link->connections, true);
        }
        if (link->shared != NULL) {
            ev_io_stop(proxy->shared.loop, &link->listener);
            (void)close(link->listener.fd);
        }
    }
    free(proxy->links);
    if (proxy->shared.loop != NULL) {
        ev_loop_destroy(proxy->shared.loop);
    }
    free(proxy);
}

int chaos_proxy_run(int control, size_t clients, size_t nodes, const uint16_t *upstream) {
    struct chaos_proxy *proxy = calloc(1, sizeof *proxy);
    struct chaos_proxy_ready ready = {.error = "the link proxy has no memory"};
    bool open = false;
    if (proxy != NULL) {
        ready.error[0] = '\0';
        proxy->clients = clients;
        proxy->nodes = nodes;
        open = open_all(proxy, upstream, &ready);
    }
    bool told = send(control, &ready, sizeof ready, MSG_NOSIGNAL) == (ssize_t)sizeof ready;
    if (open && told) {
        struct ev_loop *loop = proxy->shared.loop;
        ev_io_init(&proxy->control, on_control, control, EV_READ);
        ev_timer_init(&proxy->shared.rested, on_rested, 0., CHAOS_RETRY_MS / 1e3); /* for ev_timer_again() */
        proxy->control.data = proxy->shared.rested.data = proxy;
        ev_io_start(loop, &proxy->control);
        ev_run(loop, 0);
        ev_io_stop(loop, &proxy->control);
        ev_timer_stop(loop, &proxy->shared.rested);
    }
    if (proxy != NULL) {
        close_all(proxy);
    }
    return open && told ? 0 : 1;
}
