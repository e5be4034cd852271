/* Ends TLS before a server that has none, as a test wants it. */
#include "tls_front.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "support.h"

#define PIECE_SIZE   65536
#define SMALL_WINDOW 4096

struct bytes {
    unsigned char *at;
    size_t head, tail, room;
};

/*
 * client ──▶ `in` (what came, encrypted) ──▶ requests ──▶ server
 * client ◀── wire (encrypted)            ◀── replies  ◀── server
 */
struct link {
    struct tls_front *front;
    struct link *next;
    ev_io client, server; /* their descriptors are in them */
    SSL *ssl;
    BIO *in, *out; /* of ssl, in memory */
    struct bytes requests, replies, wire;
    bool secured, ended;
};

struct tls_front {
    struct ev_loop *loop;
    struct tls_front_options options;
    SSL_CTX *context;
    ev_io listener;
    struct link *links;
    bool holds, deaf;
    size_t record_size;
    long long cut_at[2]; /* bytes since the start; -1: never */
    enum tls_front_end cut_how[2];
    struct tls_front_seen seen;
    char name[32], uri[48];
};

static size_t size_of(const struct bytes *bytes) {
    return bytes->tail - bytes->head;
}

/* Makes room for `size` more bytes and returns where they go. */
static unsigned char *room_for(struct bytes *bytes, size_t size) {
    if (bytes->head > 0 && bytes->head == bytes->tail) {
        bytes->head = bytes->tail = 0;
    }
    if (bytes->room - bytes->tail < size) {
        bytes->room = 2 * (bytes->tail + size);
        bytes->at = realloc(bytes->at, bytes->room);
        if (!bytes->at) {
            support_fatal("TLS front: out of memory");
        }
    }
    return bytes->at + bytes->tail;
}

_Noreturn static void fail(const char *what) {
    char text[256];
    ERR_error_string_n(ERR_get_error(), text, sizeof text);
    support_fatal("TLS front: %s: %s", what, text);
}

/* The link stays in the list until the turn is over: reap(). */
static void end(struct link *link, enum tls_front_end how) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (link->ended) {
        return;
    }
    link->ended = true;
    ev_io_stop(link->front->loop, &link->client);
    ev_io_stop(link->front->loop, &link->server);
    if (how == TLS_FRONT_FIN_RST) {
        (void)shutdown(link->client.fd, SHUT_WR);
    }
    if (how == TLS_FRONT_RST || how == TLS_FRONT_FIN_RST) {
        (void)setsockopt(link->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    } else {
        /* With unread input, close() would send a RST instead of our FIN. */
        char drain[4096];
        (void)shutdown(link->client.fd, SHUT_WR);
        while (recv(link->client.fd, drain, sizeof drain, MSG_DONTWAIT) > 0) {
        }
    }
    (void)close(link->client.fd);
    (void)close(link->server.fd);
}

static void reap(struct tls_front *front) {
    struct link **at = &front->links;
    while (*at) {
        struct link *link = *at;
        if (!link->ended) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        SSL_free(link->ssl);
        free(link->requests.at);
        free(link->replies.at);
        free(link->wire.at);
        free(link);
    }
}

/* How many of `size` bytes may pass before the cut. Sets *cuts if the next one must not. */
static size_t allowance(const struct tls_front *front, enum tls_front_way way, size_t size, bool *cuts) {
    const long long left = front->cut_at[way] - front->seen.bytes[way];
    const bool limited = front->cut_at[way] >= 0 && left < (long long)size;
    *cuts = limited && left == 0;
    return limited ? (size_t)left : size;
}

static void cut(struct link *link, enum tls_front_way way) {
    link->front->cut_at[way] = -1;
    end(link, link->front->cut_how[way]);
}

static void watch(struct link *link) {
    const struct tls_front *front = link->front;
    const int client = (front->deaf ? 0 : EV_READ) | (size_of(&link->wire) > 0 ? EV_WRITE : 0);
    const int server = EV_READ | (size_of(&link->requests) > 0 ? EV_WRITE : 0);
    if (link->ended) {
        return;
    }
    ev_io_stop(front->loop, &link->client);
    ev_io_set(&link->client, link->client.fd, client);
    if (client) {
        ev_io_start(front->loop, &link->client);
    }
    ev_io_stop(front->loop, &link->server);
    ev_io_set(&link->server, link->server.fd, server);
    ev_io_start(front->loop, &link->server);
}

/* Writes what the descriptor takes; *count is how many bytes. Returns false if it is broken. */
static bool flush(int fd, struct bytes *bytes, size_t limit, size_t *count) {
    ssize_t sent = send(fd, bytes->at + bytes->head, limit, MSG_NOSIGNAL | MSG_DONTWAIT);
    *count = sent > 0 ? (size_t)sent : 0;
    bytes->head += *count;
    return sent >= 0 || errno == EAGAIN || errno == EINTR;
}

static void send_wire(struct link *link) {
    const int waiting = BIO_pending(link->out);
    size_t count = 1;
    bool cuts = false;
    if (waiting > 0) {
        const int got = BIO_read(link->out, room_for(&link->wire, (size_t)waiting), waiting);
        link->wire.tail += (size_t)(got > 0 ? got : 0);
    }
    while (!link->ended && size_of(&link->wire) > 0 && count > 0) {
        const size_t size = allowance(link->front, TLS_FRONT_REPLIES, size_of(&link->wire), &cuts);
        if (cuts) {
            cut(link, TLS_FRONT_REPLIES);
        } else if (!flush(link->client.fd, &link->wire, size, &count)) {
            end(link, TLS_FRONT_RST);
        }
        link->front->seen.bytes[TLS_FRONT_REPLIES] += cuts ? 0 : (long long)count;
    }
}

static void send_requests(struct link *link) {
    size_t count = 1;
    while (!link->ended && size_of(&link->requests) > 0 && count > 0) {
        if (!flush(link->server.fd, &link->requests, size_of(&link->requests), &count)) {
            end(link, TLS_FRONT_FIN);
        }
    }
}

/* Returns whether TLS goes on: it only waits for more bytes. Sends what it has to say first, an
 * alert perhaps. */
static bool goes_on(struct link *link, int result) {
    const int error = SSL_get_error(link->ssl, result);
    send_wire(link);
    ERR_clear_error();
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
        end(link, TLS_FRONT_FIN);
    }
    return !link->ended;
}

static void note_peer(struct link *link) {
    struct tls_front *front = link->front;
    X509 *peer = SSL_get_peer_certificate(link->ssl);
    front->seen.handshakes++;
    front->seen.client_name[0] = '\0';
    if (peer) {
        X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, front->seen.client_name,
                                  sizeof front->seen.client_name);
        X509_free(peer);
    }
}

static void decrypt(struct link *link) {
    while (!link->ended) {
        if (!link->secured) {
            const int result = SSL_do_handshake(link->ssl);
            if (result != 1) {
                (void)goes_on(link, result);
                return;
            }
            link->secured = true;
            note_peer(link);
        }
        const int got = SSL_read(link->ssl, room_for(&link->requests, PIECE_SIZE), PIECE_SIZE);
        if (got <= 0) {
            (void)goes_on(link, got);
            return;
        }
        link->requests.tail += (size_t)got;
    }
}

static void seal(struct link *link) {
    const struct tls_front *front = link->front;
    while (!link->ended && link->secured && !front->holds && size_of(&link->replies) > 0) {
        size_t size = size_of(&link->replies);
        size = size < front->record_size ? size : front->record_size;
        const int wrote = SSL_write(link->ssl, link->replies.at + link->replies.head, (int)size);
        if (wrote <= 0) {
            (void)goes_on(link, wrote);
            return;
        }
        link->replies.head += (size_t)wrote;
    }
}

/* Brings everything forward as far as it goes. */
static void push(struct link *link) {
    seal(link);
    if (!link->ended) {
        send_wire(link);
    }
    send_requests(link);
    watch(link);
}

static void on_client(struct ev_loop *loop, ev_io *watcher, int events) {
    struct link *link = watcher->data;
    struct tls_front *front = link->front;
    char piece[PIECE_SIZE];
    bool cuts = false;
    (void)loop;
    if (events & EV_READ) {
        const size_t size = allowance(front, TLS_FRONT_REQUESTS, sizeof piece, &cuts);
        const ssize_t got = cuts ? 0 : recv(link->client.fd, piece, size, MSG_DONTWAIT);
        if (cuts) {
            cut(link, TLS_FRONT_REQUESTS);
        } else if (got > 0) {
            front->seen.bytes[TLS_FRONT_REQUESTS] += got;
            if (BIO_write(link->in, piece, (int)got) != got) {
                fail("BIO_write");
            }
            decrypt(link);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            end(link, TLS_FRONT_FIN);
        }
    }
    push(link);
    reap(front);
}

static void on_server(struct ev_loop *loop, ev_io *watcher, int events) {
    struct link *link = watcher->data;
    (void)loop;
    if (events & EV_READ) {
        const ssize_t got = recv(link->server.fd, room_for(&link->replies, PIECE_SIZE), PIECE_SIZE, MSG_DONTWAIT);
        if (got > 0) {
            link->replies.tail += (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            end(link, TLS_FRONT_FIN);
        }
    }
    push(link);
    reap(link->front);
}

static int connect_to(int port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void on_accept(struct ev_loop *loop, ev_io *watcher, int events) {
    struct tls_front *front = watcher->data;
    const int fd = accept4(watcher->fd, NULL, NULL, SOCK_CLOEXEC);
    const int server = fd < 0 ? -1 : connect_to(front->options.target_port);
    int on = 1;
    (void)loop, (void)events;
    if (server < 0) {
        (void)close(fd); /* the server is down, and so are we */
        return;
    }
    struct link *link = calloc(1, sizeof *link);
    if (!link || !(link->ssl = SSL_new(front->context)) || !(link->in = BIO_new(BIO_s_mem())) ||
        !(link->out = BIO_new(BIO_s_mem()))) {
        fail("a connection");
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    SSL_set_bio(link->ssl, link->in, link->out);
    SSL_set_accept_state(link->ssl);
    link->front = front;
    link->next = front->links;
    front->links = link;
    front->seen.connections++;
    ev_io_init(&link->client, on_client, fd, EV_READ);
    ev_io_init(&link->server, on_server, server, EV_READ);
    link->client.data = link->server.data = link;
    watch(link);
}

static int on_asked_name(SSL *ssl, int *alert, void *data) {
    struct tls_front *front = data;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    (void)snprintf(front->seen.asked_name, sizeof front->seen.asked_name, "%s", name ? name : "");
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_context(struct tls_front *front) {
    const struct tls_front_options *options = &front->options;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_chain_file(context, options->cert_file) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, options->key_file, SSL_FILETYPE_PEM) != 1 ||
        (options->tls12 && SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION) != 1)) {
        fail(options->cert_file);
    }
    if (options->client_ca_file) {
        if (SSL_CTX_load_verify_locations(context, options->client_ca_file, NULL) != 1) {
            fail(options->client_ca_file);
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_tlsext_servername_callback(context, on_asked_name);
    SSL_CTX_set_tlsext_servername_arg(context, front);
    return context;
}

struct tls_front *tls_front_start(struct ev_loop *loop, const struct tls_front_options *options) {
    struct tls_front *front = calloc(1, sizeof *front);
    int port, size = SMALL_WINDOW;
    if (!front) {
        support_fatal("TLS front: out of memory");
    }
    front->loop = loop;
    front->options = *options;
    front->record_size = TLS_FRONT_RECORD_MAX;
    front->cut_at[0] = front->cut_at[1] = -1;
    front->context = make_context(front);
    const int fd = support_listen(&port);
    if (options->small_window && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) != 0) {
        support_fatal("TLS front: SO_RCVBUF: %s", strerror(errno));
    }
    (void)snprintf(front->name, sizeof front->name, "127.0.0.1:%d", port);
    (void)snprintf(front->uri, sizeof front->uri, "rediss://%s", front->name);
    ev_io_init(&front->listener, on_accept, fd, EV_READ);
    front->listener.data = front;
    ev_io_start(loop, &front->listener);
    return front;
}

void tls_front_stop(struct tls_front *front) {
    if (!front) {
        return;
    }
    tls_front_cut_now(front, TLS_FRONT_FIN);
    ev_io_stop(front->loop, &front->listener);
    (void)close(front->listener.fd);
    SSL_CTX_free(front->context);
    free(front);
}

const char *tls_front_uri(const struct tls_front *front) {
    return front->uri;
}

const char *tls_front_name(const struct tls_front *front) {
    return front->name;
}

/* Brings all links forward after a change. */
static void push_all(struct tls_front *front) {
    for (struct link *link = front->links; link; link = link->next) {
        push(link);
    }
    reap(front);
}

void tls_front_hold(struct tls_front *front, bool on) {
    front->holds = on;
    push_all(front);
}

void tls_front_record_size(struct tls_front *front, size_t bytes) {
    front->record_size = bytes;
}

void tls_front_deafen(struct tls_front *front, bool on) {
    front->deaf = on;
    push_all(front);
}

void tls_front_cut_after(struct tls_front *front, enum tls_front_way way, long long bytes, enum tls_front_end how) {
    front->cut_at[way] = bytes < 0 ? -1 : front->seen.bytes[way] + bytes;
    front->cut_how[way] = how;
}

void tls_front_cut_now(struct tls_front *front, enum tls_front_end how) {
    for (struct link *link = front->links; link; link = link->next) {
        if (how == TLS_FRONT_NOTIFY) {
            (void)SSL_shutdown(link->ssl);
            send_wire(link);
        }
        end(link, how);
    }
    reap(front);
}

void tls_front_update_keys(struct tls_front *front) {
    for (struct link *link = front->links; link; link = link->next) {
        if (link->secured &&
            (SSL_key_update(link->ssl, SSL_KEY_UPDATE_REQUESTED) != 1 || SSL_do_handshake(link->ssl) != 1)) {
            fail("SSL_key_update");
        }
    }
    push_all(front);
}

const struct tls_front_seen *tls_front_seen(struct tls_front *front) {
    front->seen.open_links = 0;
    front->seen.held = 0;
    for (const struct link *link = front->links; link; link = link->next) {
        front->seen.open_links++;
        front->seen.held += size_of(&link->replies);
    }
    return &front->seen;
}
