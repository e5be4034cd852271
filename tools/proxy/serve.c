/* The proxy's loop, when each stream runs next, its listeners, and its input. */
#include "serve.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
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

/*
 * A sleeping process wakes up this late. So the proxy wakes earlier and polls until it is time.
 * After a long delay the error does not matter, and polling would take processor time from the
 * programs under test.
 */
#define EARLY_US      40
#define LONG_DELAY_US 5000

static void take_off(struct proxy_agenda *agenda, struct proxy_stream *stream) {
    *(stream->before != NULL ? &stream->before->after : &agenda->first) = stream->after;
    *(stream->after != NULL ? &stream->after->before : &agenda->last) = stream->before;
    stream->wake_us = PROXY_PIPE_NEVER_US;
}

void proxy_agenda_at(struct proxy_agenda *agenda, struct proxy_stream *stream, int64_t when_us) {
    struct proxy_stream *before = agenda->last;
    if (stream->wake_us == when_us) {
        return;
    }
    if (stream->wake_us != PROXY_PIPE_NEVER_US) {
        take_off(agenda, stream);
        before = agenda->last;
    }
    if (when_us == PROXY_PIPE_NEVER_US) {
        return;
    }
    while (before != NULL && before->wake_us > when_us) {
        before = before->before;
    }
    stream->wake_us = when_us;
    stream->before = before;
    stream->after = before != NULL ? before->after : agenda->first;
    *(before != NULL ? &before->after : &agenda->first) = stream;
    *(stream->after != NULL ? &stream->after->before : &agenda->last) = stream;
}

/* Removes and returns the first stream if it is due, otherwise NULL. */
static struct proxy_stream *next_due(struct proxy_agenda *agenda, int64_t now_us) {
    struct proxy_stream *first = agenda->first;
    if (first == NULL || first->wake_us > now_us) {
        return NULL;
    }
    take_off(agenda, first);
    return first;
}

/* How long the loop may wait for events (the timer is one): 0, or -1 without a limit. Sets the
 * timer only to an earlier time. So it is rarely set, and sometimes fires too early. */
static int timeout_ms_of(struct proxy_agenda *agenda) {
    const struct proxy_stream *first = agenda->first;
    if (first == NULL) {
        return -1;
    }
    int64_t ring_us = first->wake_us - (first->pipe.lane->rule.delay_us < LONG_DELAY_US ? EARLY_US : 0);
    if (ring_us <= tool_now_us()) {
        return 0;
    }
    if (ring_us < agenda->armed_us) {
        struct itimerspec at = {
            .it_value = {.tv_sec = (time_t)(ring_us / 1000000), .tv_nsec = (long)(ring_us % 1000000) * 1000}};
        if (timerfd_settime(agenda->timer.fd, TFD_TIMER_ABSTIME, &at, NULL) != 0) {
            return 0; /* never happens; polling still works */
        }
        agenda->armed_us = ring_us;
    }
    return -1;
}

static void on_ring(struct proxy_source *source, uint32_t events) {
    struct proxy_agenda *agenda = (struct proxy_agenda *)((char *)source - offsetof(struct proxy_agenda, timer));
    (void)events;
    agenda->armed_us = PROXY_PIPE_NEVER_US;
}

static bool open_agenda(struct proxy_agenda *agenda) {
    *agenda = (struct proxy_agenda){.armed_us = PROXY_PIPE_NEVER_US};
    agenda->timer = (struct proxy_source){timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC), on_ring};
    return agenda->timer.fd >= 0;
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
        int timeout_ms = timeout_ms_of(&proxy->agenda);
        if (timeout_ms < 0 && proxy->rested_us != 0) {
            timeout_ms = PROXY_RETRY_MS;
        }
        int count = epoll_wait(proxy->epoll, events, EVENTS_MAX, timeout_ms);
        for (int i = 0; i < count; i++) {
            struct proxy_source *source = events[i].data.ptr;
            source->on_event(source, events[i].events);
        }
        int64_t now_us = proxy->agenda.first != NULL || proxy->rested_us != 0 ? tool_now_us() : 0;
        for (struct proxy_stream *stream; (stream = next_due(&proxy->agenda, now_us)) != NULL;) {
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
    if (proxy->links == NULL || proxy->epoll < 0 || !open_agenda(&proxy->agenda) ||
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
