/* Why a connection failed, and when to try again. */
#include "node/failure.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/time.h"

#define BACKOFF_MIN_MS  10
#define BACKOFF_MAX_MS  2000
#define STABLE_AFTER_MS 2000 /* a connection that lived so long is no failed try */

int64_t redlock_node_delay_ns(struct redlock_node *node, unsigned *failures, int64_t up_ns) {
    if (redlock_node_now_ns(node) >= redlock_after_ms(up_ns, STABLE_AFTER_MS)) {
        *failures = 0;
    }
    if (*failures < REDLOCK_NODE_FAILURES_MAX) {
        ++*failures;
    }
    return redlock_backoff_ns(&node->jitter, *failures, BACKOFF_MIN_MS, BACKOFF_MAX_MS);
}

struct redlock_text *redlock_node_errno_text(const char *prefix, int error) {
    const char *text = strerror(error);
    const bool ours = error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
    return redlock_text_new(ours ? REDLOCK_CAUSE_OURS : REDLOCK_CAUSE_CONNECTION, "%s%c%s", prefix,
                            tolower((unsigned char)text[0]), text[0] == '\0' ? "" : text + 1);
}

struct redlock_text *redlock_node_read_text(const struct redlock_connection *connection, int error) {
    if (error == EPROTO && connection->tls != NULL) {
        const struct redlock_tls_failure *failure = redlock_tls_failure(connection->tls);
        return redlock_text_new(failure->cause, "%s", failure->text);
    }
    switch (error) {
    case 0:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "connection closed by the node");
    case ENOMEM:
        return redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for a reply");
    default:
        return redlock_node_errno_text("", error);
    }
}

struct redlock_text *redlock_node_garbled_text(const struct redlock_connection *connection, const char *hint) {
    if (redlock_reader_is_full(connection->reader)) {
        return redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE,
                                "the node sent a reply of more than 1 MiB, more than any that we ask for has");
    }
    return redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE, "the node answered out of protocol (%s); is it a Redis server%s?",
                            redlock_reader_error(connection->reader), hint);
}

struct redlock_text *redlock_node_unasked_text(void) {
    return redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE, "the node answered what nobody had asked; is it a Redis server?");
}
