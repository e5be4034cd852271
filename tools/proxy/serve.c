/* The proxy's loop, its listeners, and its input. */
#include "serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy.h"
#include "values/clock.h"

enum {
    BACKLOG = 1024,
    ACCEPTS_MAX = 16, /* from one listener, in one turn of the loop */
    EVENTS_MAX = 256,
    FILES_OTHER = 32,     /* standard files, the input, the loop's own, … */
    FILES_A_LINK = 1 + 4, /* a listener, and two connections: a new one may replace another */
};

bool proxy_watch(struct proxy_server *proxy, struct proxy_source *source, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0;
}

void proxy_listen(struct proxy_link *link, bool on) {
    struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = &link->listener};
    (void)epoll_ctl(link->proxy->epoll, EPOLL_CTL_MOD, link->listener.fd, &event);
}

void proxy_complain(struct proxy_link *link, const char *what) {
    if (!link->proxy->complained) {
        link->proxy->complained = true;
        fprintf(stderr,
                "redlock-proxy: cannot %s (link %zu, to port %u): %s. It goes on trying; if this is about open files, "
                "raise `ulimit -n`. This is said once.\n",
                what, (size_t)(link - link->proxy->links), link->target, strerror(errno));
    }
}

/* Accepts the next waiting connection. Returns -1 with errno. */
static int next_client(struct proxy_link *link) {
    int fd = accept4(link->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    link->accepted += fd >= 0;
    return fd;
}

static void on_listener(struct proxy_source *source, uint32_t events) {
    struct proxy_link *link = (struct proxy_link *)source;
    (void)events;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        if (link->connection_count >= PROXY_CONNECTIONS_MAX) {
            proxy_listen(link, false); /* until one of them closes */
            return;
        }
        int client = next_client(link);
        if (client >= 0 && link->lanes[PROXY_REQUESTS].rule.refuse) {
            proxy_socket_close(client, true);
        } else if (client >= 0) {
            proxy_connection_open(link, client);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            /* EMFILE and similar: the listener stays readable, so retrying at once would spin. */
            proxy_complain(link, "accept a connection");
            proxy_listen(link, false);
            link->proxy->rested_us = tool_now_us() + PROXY_RETRY_MS * 1000;
            return;
        }
    }
}

static void end_rest(struct proxy_server *proxy) {
    proxy->rested_us = 0;
    for (size_t i = 0; i < proxy->link_count; i++) {
        proxy_listen(&proxy->links[i], proxy->links[i].connection_count < PROXY_CONNECTIONS_MAX);
    }
}

/* Clients whose connection waits in the kernel are connected too, as they see it. Cut those as
 * well. */
void proxy_cut(struct proxy_link *link, bool reset_client, bool reset_node) {
    for (int fd; (fd = next_client(link)) >= 0 || errno == EINTR || errno == ECONNABORTED;) {
        if (fd >= 0) {
            proxy_socket_close(fd, true);
        }
    }
    while (link->connections != NULL) {
        proxy_connection_close(link->connections, reset_client, reset_node);
    }
}

/* A reader that does not take an answer has given up on it. */
static void say(const struct proxy_server *proxy, char *line, size_t size) {
    line[size++] = '\n';
    (void)!write(proxy->output, line, size);
}

static void on_input(struct proxy_source *source, uint32_t events) {
    struct proxy_server *proxy = (struct proxy_server *)source;
    char answer[512];
    (void)events;
    ssize_t got = read(source->fd, proxy->line + proxy->line_size, sizeof proxy->line - proxy->line_size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    proxy->line_size += got > 0 ? (size_t)got : 0;
    for (char *end; (end = memchr(proxy->line, '\n', proxy->line_size)) != NULL;) {
        *end = '\0';
        proxy_command(proxy, proxy->line, answer, sizeof answer - 1);
        say(proxy, answer, strlen(answer));
        proxy->line_size -= (size_t)(end + 1 - proxy->line);
        memmove(proxy->line, end + 1, proxy->line_size);
    }
    if (proxy->line_size == sizeof proxy->line) {
        fprintf(stderr, "redlock-proxy: a command of more than %zu bytes\n", sizeof proxy->line - 1);
        got = -1;
    }
    proxy->over = got <= 0;
}

/* Now no event and no list points to them. */
static void free_closed(struct proxy_server *proxy) {
    while (proxy->closed != NULL) {
        struct proxy_connection *connection = proxy->closed;
        proxy->closed = connection->next;
        free(connection);
    }
}

static void run(struct proxy_server *proxy) {
    struct epoll_event events[EVENTS_MAX];
    while (!proxy->over) {
        int timeout_ms = proxy_agenda_timeout_ms(&proxy->agenda);
        if (timeout_ms < 0 && proxy->rested_us != 0) {
            timeout_ms = PROXY_RETRY_MS;
        }
        int count = epoll_wait(proxy->epoll, events, EVENTS_MAX, timeout_ms);
        for (int i = 0; i < count; i++) {
            struct proxy_source *source = events[i].data.ptr;
            source->on_event(source, events[i].events);
        }
        int64_t now_us = proxy->agenda.first != NULL || proxy->rested_us != 0 ? tool_now_us() : 0;
        for (struct proxy_stream *stream; (stream = proxy_agenda_due(&proxy->agenda, now_us)) != NULL;) {
            proxy_stream_pump(stream);
        }
        if (proxy->rested_us != 0 && now_us >= proxy->rested_us) {
            end_rest(proxy);
        }
        free_closed(proxy);
    }
}

/* Raises the limit of open files to the hard limit. Returns false with a sentence if that is too
 * low. */
static bool have_files(size_t count, char *error, size_t size) {
    struct rlimit files;
    rlim_t needed = FILES_OTHER + FILES_A_LINK * count;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        snprintf(error, size, "error: cannot ask for the limit of open files: %s", strerror(errno));
        return false;
    }
    if (files.rlim_max != RLIM_INFINITY && files.rlim_max < needed) {
        snprintf(error, size,
                 "error: %zu links need %llu open files (a listener and two connections each), and %llu are allowed: "
                 "raise the hard limit (`ulimit -Hn`), or take fewer links",
                 count, (unsigned long long)needed, (unsigned long long)files.rlim_max);
        return false;
    }
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        snprintf(error, size, "error: cannot raise the limit of open files: %s", strerror(errno));
        return false;
    }
    return true;
}

static bool open_link(struct proxy_link *link) {
    static const int on = 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(link->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = link->listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool open = fd >= 0 && (link->port == 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) &&
                bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, BACKLOG) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &size) == 0 &&
                proxy_watch(link->proxy, &link->listener, EPOLLIN);
    link->port = ntohs(at.sin_port);
    return open;
}

static bool open_all(struct proxy_server *proxy, const struct proxy_ports *ports, size_t count, char *error,
                     size_t size) {
    if (!have_files(count, error, size)) {
        return false;
    }
    proxy->links = calloc(count, sizeof *proxy->links);
    proxy->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (proxy->links == NULL || proxy->epoll < 0 || !proxy_agenda_open(&proxy->agenda) ||
        !proxy_watch(proxy, &proxy->input, EPOLLIN) || !proxy_watch(proxy, &proxy->agenda.timer, EPOLLIN | EPOLLET)) {
        snprintf(error, size, "error: no memory, no descriptors, or a file for input: %s", strerror(errno));
        return false;
    }
    for (; proxy->link_count < count; proxy->link_count++) {
        size_t i = proxy->link_count;
        struct proxy_link *link = &proxy->links[i];
        *link = (struct proxy_link){.listener.on_event = on_listener,
                                    .proxy = proxy,
                                    .port = ports[i].listen,
                                    .target = ports[i].target,
                                    .lanes = {{.random = 2 * i}, {.random = 2 * i + 1}}};
        if (!open_link(link)) {
            snprintf(error, size, "error: cannot listen on 127.0.0.1:%u for link %zu: %s", ports[i].listen, i,
                     strerror(errno));
            return false;
        }
    }
    return true;
}

static void close_all(struct proxy_server *proxy) {
    for (size_t i = 0; i < proxy->link_count; i++) {
        while (proxy->links[i].connections != NULL) {
            proxy_connection_close(proxy->links[i].connections, true, true);
        }
        (void)close(proxy->links[i].listener.fd);
    }
    free_closed(proxy);
    free(proxy->links);
    (void)close(proxy->epoll);
    (void)close(proxy->agenda.timer.fd);
    free(proxy);
}

int proxy_serve(int input, int output, const struct proxy_ports *ports, size_t count) {
    struct proxy_server *proxy = calloc(1, sizeof *proxy);
    size_t size = 512 + count * sizeof " 65535", used = strlen("ready");
    char *first = malloc(size);
    if (proxy == NULL || first == NULL) {
        free(proxy);
        free(first);
        return 1;
    }
    proxy->input = (struct proxy_source){input, on_input};
    proxy->output = output;
    proxy->epoll = proxy->agenda.timer.fd = -1;
    bool open = open_all(proxy, ports, count, first, size);
    if (open) {
        memcpy(first, "ready", used);
        for (size_t i = 0; i < count; i++) {
            used += (size_t)snprintf(first + used, size - used, " %u", proxy->links[i].port);
        }
    } else {
        used = strlen(first);
    }
    say(proxy, first, used);
    free(first);
    if (open) {
        run(proxy);
    }
    close_all(proxy);
    return open ? 0 : 1;
}
