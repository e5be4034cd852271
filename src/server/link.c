/* The life of one connection until it is open. */
#include "server/link.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/time.h"

#define BACKOFF_MIN_MS  10
#define BACKOFF_MAX_MS  2000
#define STABLE_AFTER_MS 2000 /* a connection that lived so long is no failed try */

static void set_timer(struct redlock_link *link) {
    const struct redlock_reactor *reactor = link->connection.reactor;
    reactor->timer_at(reactor->ctx, &link->connection.watch,
                      link->connection.unread ? reactor->now_ns(reactor->ctx) : link->due_ns);
}

void redlock_link_set(struct redlock_link *link, enum redlock_link_state state, int64_t due_ns) {
    assert((link->connection.stream.fd >= 0) == (state >= REDLOCK_LINK_OPENING));
    link->state = state;
    link->due_ns = due_ns;
    set_timer(link);
}

void redlock_link_end(struct redlock_link *link) {
    redlock_connection_reset(&link->connection);
    redlock_link_set(link, REDLOCK_LINK_OFF, REDLOCK_NEVER_NS);
}

void redlock_link_wait(struct redlock_link *link, int64_t due_ns) {
    redlock_connection_reset(&link->connection);
    redlock_link_set(link, REDLOCK_LINK_WAITING, due_ns);
}

void redlock_link_begin(struct redlock_link *link) {
    assert(link->state == REDLOCK_LINK_OFF || link->state == REDLOCK_LINK_WAITING);
    link->give_up_ns = redlock_after_ms(redlock_link_now_ns(link), link->options->connect_timeout_ms);
    redlock_link_set(link, REDLOCK_LINK_RESOLVING, link->give_up_ns);
}

static void fail(struct redlock_link *link, struct redlock_text *why) {
    assert(link->state >= REDLOCK_LINK_RESOLVING);
    link->ops->failed(link, why);
}

/* Begins to connect to the next address. Each gets its share of the time left. Returns 0 or an
 * errno. */
static int try_next(struct redlock_link *link) {
    assert(link->connection.stream.fd < 0 && link->tried < link->endpoint_count);
    const int64_t now_ns = redlock_link_now_ns(link);
    const int64_t share_ns = (link->give_up_ns - now_ns) / (int64_t)(link->endpoint_count - link->tried);
    link->endpoint = (link->first + link->tried++) % link->endpoint_count;
    const struct redlock_endpoint *endpoint = &link->endpoints[link->endpoint];
    const int error =
        redlock_connection_open(&link->connection, (const struct sockaddr *)&endpoint->address, endpoint->size);
    if (error == 0) {
        redlock_link_set(link, REDLOCK_LINK_OPENING, now_ns + share_ns);
    }
    return error;
}

static void greet(struct redlock_link *link) {
    redlock_link_set(link, REDLOCK_LINK_GREETING, link->give_up_ns);
    if (redlock_connection_start(&link->connection) && link->ops->greet(link)) {
        redlock_link_flush_soon(link);
    } else {
        fail(link, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for %s", link->ops->purpose));
    }
}

/* Begins TLS with certificates as they are now. Returns false without memory. */
static bool begin_tls(struct redlock_link *link) {
    const struct redlock_reactor *reactor = link->connection.reactor;
    struct redlock_tls_context *tls = link->options->tls;
    char why[REDLOCK_TLS_FAILURE_SIZE];
    assert(tls != NULL);
    redlock_link_set(link, REDLOCK_LINK_SECURING, link->give_up_ns);
    switch (redlock_tls_context_refresh(tls, &(struct redlock_error_text){why, sizeof why})) {
    case REDLOCK_TLS_FILES_SAME:
        break;
    case REDLOCK_TLS_FILES_RENEWED:
        reactor->log(reactor->ctx, REDLOCK_LOG_INFO, "TLS files were read again");
        break;
    case REDLOCK_TLS_FILES_BROKEN:
        reactor->log(reactor->ctx, REDLOCK_LOG_WARNING, "TLS files changed, but %s; the old ones stay in use", why);
        break;
    }
    return redlock_connection_begin_tls(&link->connection, tls, link->address->host);
}

static void secure(struct redlock_link *link, unsigned events) {
    int error;
    if (link->connection.blocked && (events & REDLOCK_WRITABLE) != 0) {
        redlock_connection_unblock(&link->connection);
    }
    switch (redlock_connection_secure(&link->connection, &error)) {
    case REDLOCK_TLS_WAITING:
        break;
    case REDLOCK_TLS_SECURED:
        greet(link);
        break;
    case REDLOCK_TLS_FAILED:
        fail(link, redlock_link_read_text(&link->connection, error));
        break;
    }
}

/* error: why the last address was refused. */
static void try_the_rest(struct redlock_link *link, int error) {
    assert(link->state == REDLOCK_LINK_RESOLVING || link->state == REDLOCK_LINK_OPENING);
    while (link->tried < link->endpoint_count) {
        error = try_next(link);
        if (error == 0) {
            return;
        }
    }
    fail(link, redlock_link_errno_text("", error));
}

void redlock_link_open(struct redlock_link *link, const struct redlock_endpoint *endpoints, size_t count) {
    assert(link->state == REDLOCK_LINK_RESOLVING && count > 0);
    link->endpoints = endpoints;
    link->endpoint_count = count;
    link->tried = 0;
    try_the_rest(link, EADDRNOTAVAIL);
}

static void refuse(struct redlock_link *link, int error) {
    assert(link->state == REDLOCK_LINK_OPENING);
    redlock_connection_close(&link->connection);
    try_the_rest(link, error);
}

static void opened(struct redlock_link *link) {
    const int error = redlock_stream_connected(link->connection.stream.fd);
    if (error != 0) {
        refuse(link, error);
    } else if (!link->address->tls) {
        greet(link);
    } else if (begin_tls(link)) {
        secure(link, 0);
    } else {
        fail(link, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for TLS"));
    }
}

static void read_replies(struct redlock_link *link) {
    assert(link->state >= REDLOCK_LINK_GREETING && link->connection.stream.fd >= 0);
    int error = 0;
    const enum redlock_received received = redlock_connection_receive(&link->connection, link->ops->take, &error);
    if (received == REDLOCK_RECEIVED_UNREAD) {
        set_timer(link);
    } else if (received != REDLOCK_RECEIVED) {
        fail(link, link->ops->why(link, received, error));
    }
}

void redlock_link_flush(struct redlock_watch *watch) {
    struct redlock_link *link = (struct redlock_link *)watch;
    const int error = link->state >= REDLOCK_LINK_GREETING
                          ? redlock_connection_write(&link->connection, &link->connection.hello)
                          : 0; /* the last connection asked */
    if (error != 0) {
        /* The server may have answered and closed before this write failed. Its answers still
         * count. */
        read_replies(link);
    }
    if (error != 0 && link->state >= REDLOCK_LINK_GREETING) {
        fail(link, redlock_link_read_text(&link->connection, error));
    }
}

static void on_io(struct redlock_watch *watch, unsigned events) {
    struct redlock_link *link = (struct redlock_link *)watch;
    switch (link->state) {
    case REDLOCK_LINK_OFF:
    case REDLOCK_LINK_WAITING:
        break;
    case REDLOCK_LINK_RESOLVING:
        link->ops->resolved(link);
        break;
    case REDLOCK_LINK_OPENING:
        if ((events & REDLOCK_WRITABLE) != 0) {
            opened(link);
        }
        break;
    case REDLOCK_LINK_SECURING:
        secure(link, events);
        break;
    case REDLOCK_LINK_GREETING:
    case REDLOCK_LINK_OPEN:
        if ((events & REDLOCK_READABLE) != 0) {
            read_replies(link);
        }
        if ((events & REDLOCK_WRITABLE) != 0 && link->connection.blocked && link->connection.stream.fd >= 0) {
            redlock_connection_unblock(&link->connection);
            watch->on_flush(watch);
        }
        break;
    }
}

struct redlock_text *redlock_link_unanswered_text(const struct redlock_link *link) {
    return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "connected, but %s within %lld ms", link->ops->lacks,
                            (long long)link->options->connect_timeout_ms);
}

static struct redlock_text *late_text(const struct redlock_link *link) {
    const long long timeout_ms = (long long)link->options->connect_timeout_ms;
    switch (link->state) {
    case REDLOCK_LINK_RESOLVING:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the name was not resolved within %lld ms", timeout_ms);
    case REDLOCK_LINK_OPENING:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "no connection within %lld ms", timeout_ms);
    case REDLOCK_LINK_SECURING:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION,
                                redlock_tls_has_answered(link->connection.tls)
                                    ? "connected, but the TLS handshake was not complete within %lld ms"
                                    : "connected, but no answer to the TLS handshake within %lld ms; is this a TLS "
                                      "port?",
                                timeout_ms);
    default:
        return redlock_link_unanswered_text(link);
    }
}

static void due(struct redlock_link *link, int64_t now_ns) {
    if (link->state == REDLOCK_LINK_OPENING && now_ns < link->give_up_ns) {
        refuse(link, ETIMEDOUT);
    } else if (link->state >= REDLOCK_LINK_RESOLVING && link->state <= REDLOCK_LINK_GREETING) {
        redlock_link_prefer_next(link);
        fail(link, late_text(link));
    } else {
        link->ops->due(link);
    }
}

static void on_timer(struct redlock_watch *watch) {
    struct redlock_link *link = (struct redlock_link *)watch;
    if (link->state >= REDLOCK_LINK_GREETING) {
        read_replies(link); /* the loop may run late: what has come, came in time (R7) */
    }
    const int64_t now_ns = redlock_link_now_ns(link);
    if (now_ns < link->due_ns) {
        set_timer(link);
    } else {
        due(link, now_ns);
    }
}

int redlock_link_init(struct redlock_link *link, const struct redlock_link_ops *ops,
                      const struct redlock_reactor *reactor, const struct redlock_address *address,
                      const struct redlock_server_options *options) {
    link->connection.watch =
        (struct redlock_watch){.on_io = on_io, .on_timer = on_timer, .on_flush = redlock_link_flush};
    link->ops = ops;
    link->address = address;
    link->options = options;
    link->due_ns = REDLOCK_NEVER_NS;
    return redlock_connection_init(&link->connection, reactor);
}

int64_t redlock_link_delay_ns(int64_t now_ns, uint32_t *jitter, unsigned *failures, int64_t up_ns) {
    assert(*failures <= REDLOCK_LINK_FAILURES_MAX);
    if (now_ns >= redlock_after_ms(up_ns, STABLE_AFTER_MS)) {
        *failures = 0;
    }
    if (*failures < REDLOCK_LINK_FAILURES_MAX) {
        ++*failures;
    }
    return redlock_backoff_ns(jitter, *failures, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
}

struct redlock_text *redlock_link_errno_text(const char *prefix, int error) {
    const char *text = strerror(error);
    const bool ours = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
    return redlock_text_new(ours ? REDLOCK_CAUSE_OURS : REDLOCK_CAUSE_CONNECTION, "%s%c%s", prefix,
                            tolower((unsigned char)text[0]), text[0] == '\0' ? "" : text + 1);
}

struct redlock_text *redlock_link_read_text(const struct redlock_connection *connection, int error) {
    if (error == EPROTO && connection->tls != NULL) {
        return redlock_text_new(connection->tls->failure.cause, "%s", connection->tls->failure.text);
    }
    switch (error) {
    case 0:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "connection closed by the node");
    case ENOMEM:
        return redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for a reply");
    default:
        return redlock_link_errno_text("", error);
    }
}

struct redlock_text *redlock_link_garbled_text(const struct redlock_connection *connection, const char *hint) {
    if (redlock_reader_is_full(connection->reader)) {
        return redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE,
                                "the node sent a reply of more than 1 MiB, more than any that we ask for has");
    }
    return redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE, "the node answered out of protocol (%s); is it a Redis server%s?",
                            redlock_reader_error(connection->reader), hint);
}

struct redlock_text *redlock_link_unasked_text(void) {
    return redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE, "the node answered what nobody had asked; is it a Redis server?");
}
