/* The misbehaving proxy: one thread, poll(), and a queue of pieces for each way of each connection. */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support.h"

#define LINKS_MAX 64

struct piece {
    struct piece *next;
    int64_t due_ms;
    size_t size, sent;
    char bytes[];
};

struct stream {
    struct piece *first, **last;
    bool ended; /* the source has closed */
    long long passed;
    struct mishap_marks marks;
};

/* One client and its server. ways[w] goes from fd[w] to fd[1 - w]. */
struct link {
    int fd[2];
    bool frozen, deaf;
    bool draining; /* the client has gone, and the server may read on: what it answers goes nowhere */
    struct stream ways[2];
};

struct proxy {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below but the names */
    int listener, target_port, wake[2];
    bool stopping, refusing;
    bool holding[2], swallowing[2], trickling[2];
    struct mishap planned[2];
    long long mishaps[MISHAP_CUT + 1]; /* by kind */
    int delay_ms[2];
    long long cut_after[2];
    enum proxy_cut cut_how;
    long long bytes[2];
    int connections;
    struct link links[LINKS_MAX];
    char name[32], uri[48];
};

static void close_socket(int fd, enum proxy_cut how) {
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (fd < 0) {
        return;
    }
    if (how == PROXY_RST) {
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    close(fd);
}

static void drop_pieces(struct stream *stream) {
    while (stream->first) {
        struct piece *next = stream->first->next;
        free(stream->first);
        stream->first = next;
    }
    stream->last = &stream->first;
}

static void end_link(struct link *link, enum proxy_cut how) {
    close_socket(link->fd[0], how);
    close_socket(link->fd[1], PROXY_FIN);
    for (int way = 0; way < 2; way++) {
        drop_pieces(&link->ways[way]);
        link->ways[way] = (struct stream){0};
    }
    link->fd[0] = link->fd[1] = -1;
    link->frozen = link->deaf = link->draining = false;
}

static int connect_target(int port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void accept_client(struct proxy *proxy) {
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) {
        return;
    }
    proxy->connections++;
    int server = proxy->refusing ? -1 : connect_target(proxy->target_port);
    struct link *free_link = NULL;
    for (size_t i = 0; i < LINKS_MAX && !free_link; i++) {
        if (proxy->links[i].fd[0] < 0 && proxy->links[i].fd[1] < 0) {
            free_link = &proxy->links[i];
        }
    }
    if (server < 0 || !free_link) {
        close_socket(client, PROXY_RST);
        close_socket(server, PROXY_FIN);
        return;
    }
    int on = 1;
    free_link->fd[0] = client;
    free_link->fd[1] = server;
    for (int side = 0; side < 2; side++) {
        setsockopt(free_link->fd[side], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(free_link->fd[side], F_SETFL, fcntl(free_link->fd[side], F_GETFL) | O_NONBLOCK);
        free_link->ways[side].last = &free_link->ways[side].first;
    }
}

/* Takes what the source of a way sends. False: it closed or broke. */
static bool receive(struct proxy *proxy, struct link *link, int way) {
    char bytes[16384 + MISHAP_BYTES_MAX];
    if (way == PROXY_REQUESTS && link->deaf) {
        return false; /* only its end is polled for */
    }
    ssize_t n = recv(link->fd[way], bytes, sizeof bytes - MISHAP_BYTES_MAX, 0);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (n == 0) {
        return false;
    }
    proxy->bytes[way] += n;
    if (proxy->swallowing[way]) {
        return true;
    }
    struct mishap *planned = &proxy->planned[way];
    const enum mishap_kind kind = planned->kind;
    const size_t size = mishap_meet(planned, &link->ways[way].marks, bytes, (size_t)n);
    proxy->mishaps[kind] += planned->kind == MISHAP_NONE;
    if (size == 0) {
        return true;
    }
    struct piece *piece = malloc(sizeof *piece + size);
    if (!piece) {
        support_fatal("proxy: out of memory");
    }
    *piece = (struct piece){.due_ms = support_now_ms() + proxy->delay_ms[way], .size = size};
    memcpy(piece->bytes, bytes, size);
    *link->ways[way].last = piece;
    link->ways[way].last = &piece->next;
    return true;
}

/* Passes on what is due. False: the link was cut or the destination is gone. */
static bool pass_on(struct proxy *proxy, struct link *link, int way) {
    struct stream *stream = &link->ways[way];
    while (stream->first && !link->frozen && !proxy->holding[way] && stream->first->due_ms <= support_now_ms()) {
        struct piece *piece = stream->first;
        size_t size = piece->size - piece->sent;
        long long allowance = proxy->cut_after[way] - stream->passed;
        bool cut = proxy->cut_after[way] >= 0 && (long long)size >= allowance;
        if (cut) {
            size = (size_t)(allowance > 0 ? allowance : 0);
        } else if (proxy->trickling[way]) {
            size = 1;
        }
        ssize_t n = size ? send(link->fd[1 - way], piece->bytes + piece->sent, size, MSG_NOSIGNAL) : 0;
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        stream->passed += n;
        if (cut && (size_t)n == size) {
            end_link(link, proxy->cut_how);
            return true;
        }
        piece->sent += (size_t)n;
        if (piece->sent < piece->size) {
            return true;
        }
        stream->first = piece->next;
        if (!stream->first) {
            stream->last = &stream->first;
        }
        free(piece);
    }
    if (stream->marks.cut && !stream->first) {
        end_link(link, stream->marks.reset ? PROXY_RST : PROXY_FIN);
    }
    return true;
}

static void serve_link(struct proxy *proxy, struct link *link, const short *ready) {
    for (int way = 0; way < 2; way++) {
        if (link->fd[way] >= 0 && !link->ways[way].ended && (ready[way] & (POLLIN | POLLHUP | POLLERR)) &&
            !receive(proxy, link, way)) {
            link->ways[way].ended = true;
        }
    }
    if (link->draining) {
        drop_pieces(&link->ways[PROXY_REPLIES]);
    }
    for (int way = 0; way < 2; way++) {
        if (link->fd[0] >= 0 && !pass_on(proxy, link, way)) {
            end_link(link, PROXY_RST);
            return;
        }
    }
    /*
     * A side that closed takes the link with it once nothing is left to deliver from it. The server
     * is let read on to the end: to close with its answers unread would reset the connection, and
     * take back what it has not read yet.
     */
    if (link->fd[0] >= 0 && link->ways[PROXY_REPLIES].ended && !link->ways[PROXY_REPLIES].first) {
        end_link(link, PROXY_FIN);
    } else if (link->fd[0] >= 0 && link->ways[PROXY_REQUESTS].ended && !link->ways[PROXY_REQUESTS].first &&
               !link->draining) {
        link->draining = true;
        (void)shutdown(link->fd[1], SHUT_WR);
    }
}

static void *run(void *data) {
    struct proxy *proxy = data;
    pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stopping) {
        struct pollfd polls[2 + 2 * LINKS_MAX];
        polls[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
        polls[1] = (struct pollfd){.fd = proxy->wake[0], .events = POLLIN};
        bool queued = false, trickles = false;
        for (size_t i = 0; i < LINKS_MAX; i++) {
            for (int side = 0; side < 2; side++) {
                const struct link *link = &proxy->links[i];
                int fd = link->ways[side].ended ? -1 : link->fd[side];
                polls[2 + 2 * i + (size_t)side] =
                    (struct pollfd){.fd = fd, .events = side == 0 && link->deaf ? 0 : POLLIN};
                const bool goes_on = link->ways[side].first && !link->frozen && !proxy->holding[side];
                queued |= goes_on;
                trickles |= goes_on && proxy->trickling[side] && proxy->delay_ms[side] == 0;
            }
        }
        pthread_mutex_unlock(&proxy->mutex);
        poll(polls, 2 + 2 * LINKS_MAX, trickles ? 0 : queued ? 1 : -1);
        pthread_mutex_lock(&proxy->mutex);
        char drain[64];
        if (polls[1].revents && read(proxy->wake[0], drain, sizeof drain) < 0) {
            support_fatal("proxy: read: %s", strerror(errno));
        }
        for (size_t i = 0; i < LINKS_MAX; i++) {
            short ready[2] = {polls[2 + 2 * i].revents, polls[3 + 2 * i].revents};
            serve_link(proxy, &proxy->links[i], ready);
        }
        if (polls[0].revents) {
            accept_client(proxy);
        }
    }
    pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

struct proxy *proxy_start(int target_port) {
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy) {
        support_fatal("proxy: out of memory");
    }
    int port;
    proxy->listener = support_listen(&port);
    proxy->target_port = target_port;
    proxy->cut_after[0] = proxy->cut_after[1] = -1;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        proxy->links[i].fd[0] = proxy->links[i].fd[1] = -1;
    }
    snprintf(proxy->name, sizeof proxy->name, "127.0.0.1:%d", port);
    snprintf(proxy->uri, sizeof proxy->uri, "redis://%s", proxy->name);
    if (pipe2(proxy->wake, O_CLOEXEC) != 0 || pthread_mutex_init(&proxy->mutex, NULL) != 0 ||
        pthread_create(&proxy->thread, NULL, run, proxy) != 0) {
        support_fatal("proxy: cannot start");
    }
    return proxy;
}

static void lock(struct proxy *proxy) {
    pthread_mutex_lock(&proxy->mutex);
}

static void unlock(struct proxy *proxy) {
    if (write(proxy->wake[1], "", 1) != 1) {
        support_fatal("proxy: write: %s", strerror(errno));
    }
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_stop(struct proxy *proxy) {
    if (!proxy) {
        return;
    }
    lock(proxy);
    proxy->stopping = true;
    unlock(proxy);
    pthread_join(proxy->thread, NULL);
    for (size_t i = 0; i < LINKS_MAX; i++) {
        end_link(&proxy->links[i], PROXY_FIN);
    }
    close(proxy->listener);
    close(proxy->wake[0]);
    close(proxy->wake[1]);
    pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

const char *proxy_uri(const struct proxy *proxy) {
    return proxy->uri;
}

const char *proxy_name(const struct proxy *proxy) {
    return proxy->name;
}

void proxy_delay(struct proxy *proxy, enum proxy_way way, int delay_ms) {
    lock(proxy);
    proxy->delay_ms[way] = delay_ms;
    unlock(proxy);
}

void proxy_hold(struct proxy *proxy, enum proxy_way way, bool on) {
    lock(proxy);
    proxy->holding[way] = on;
    unlock(proxy);
}

void proxy_swallow(struct proxy *proxy, enum proxy_way way, bool on) {
    lock(proxy);
    proxy->swallowing[way] = on;
    unlock(proxy);
}

void proxy_trickle(struct proxy *proxy, enum proxy_way way, bool on) {
    lock(proxy);
    proxy->trickling[way] = on;
    unlock(proxy);
}

void proxy_plan(struct proxy *proxy, enum proxy_way way, const struct mishap *mishap) {
    lock(proxy);
    proxy->planned[way] = *mishap;
    unlock(proxy);
}

long long proxy_mishaps(struct proxy *proxy, enum mishap_kind kind) {
    lock(proxy);
    long long mishaps = proxy->mishaps[kind];
    unlock(proxy);
    return mishaps;
}

void proxy_cut_after(struct proxy *proxy, enum proxy_way way, long long bytes, enum proxy_cut how) {
    lock(proxy);
    proxy->cut_after[way] = bytes;
    proxy->cut_how = how;
    unlock(proxy);
}

void proxy_cut_now(struct proxy *proxy, enum proxy_cut how) {
    lock(proxy);
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (proxy->links[i].fd[0] >= 0) {
            end_link(&proxy->links[i], how);
        }
    }
    unlock(proxy);
}

void proxy_freeze_now(struct proxy *proxy) {
    lock(proxy);
    for (size_t i = 0; i < LINKS_MAX; i++) {
        proxy->links[i].frozen = proxy->links[i].fd[0] >= 0;
    }
    unlock(proxy);
}

void proxy_deafen_now(struct proxy *proxy) {
    lock(proxy);
    for (size_t i = 0; i < LINKS_MAX; i++) {
        proxy->links[i].deaf = proxy->links[i].fd[0] >= 0;
    }
    unlock(proxy);
}

void proxy_dismiss_now(struct proxy *proxy) {
    lock(proxy);
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (proxy->links[i].fd[0] >= 0) {
            shutdown(proxy->links[i].fd[0], SHUT_WR);
        }
    }
    unlock(proxy);
}

void proxy_thaw(struct proxy *proxy) {
    lock(proxy);
    for (size_t i = 0; i < LINKS_MAX; i++) {
        proxy->links[i].frozen = proxy->links[i].deaf = false;
    }
    unlock(proxy);
}

void proxy_refuse(struct proxy *proxy, bool on) {
    lock(proxy);
    proxy->refusing = on;
    unlock(proxy);
}

long long proxy_bytes(struct proxy *proxy, enum proxy_way way) {
    lock(proxy);
    long long bytes = proxy->bytes[way];
    unlock(proxy);
    return bytes;
}

void proxy_forget_bytes(struct proxy *proxy) {
    lock(proxy);
    proxy->bytes[0] = proxy->bytes[1] = 0;
    unlock(proxy);
}

int proxy_connections(struct proxy *proxy) {
    lock(proxy);
    int connections = proxy->connections;
    unlock(proxy);
    return connections;
}

int proxy_open_links(struct proxy *proxy) {
    lock(proxy);
    int links = 0;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        links += proxy->links[i].fd[0] >= 0;
    }
    unlock(proxy);
    return links;
}
