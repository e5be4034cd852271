/* TLS on either connection of a node, before the first request. */
#include "node/secure.h"

#include "node/failure.h"

bool redlock_secure_begin(const struct redlock_node *node, struct redlock_connection *connection) {
    char why[REDLOCK_TLS_FAILURE_SIZE];
    switch (redlock_tls_context_refresh(node->options.tls, why, sizeof why)) {
    case REDLOCK_TLS_FILES_SAME:
        break;
    case REDLOCK_TLS_FILES_RENEWED:
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO, "TLS files were read again");
        break;
    case REDLOCK_TLS_FILES_BROKEN:
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING, "TLS files changed, but %s; the old ones stay in use",
                          why);
        break;
    }
    return redlock_connection_begin_tls(connection, node->options.tls, node->address.host);
}

enum redlock_securing redlock_secure_io(struct redlock_connection *connection, unsigned events,
                                        struct redlock_text **why) {
    int error;
    if (connection->blocked && (events & REDLOCK_WRITABLE) != 0) {
        redlock_connection_unblock(connection);
    }
    const enum redlock_securing securing = redlock_connection_secure(connection, &error);
    if (securing == REDLOCK_SECURING_FAILED) {
        *why = redlock_node_read_text(connection, error);
    }
    return securing;
}

struct redlock_text *redlock_secure_late_text(const struct redlock_node *node,
                                              const struct redlock_connection *connection) {
    return redlock_text_new(REDLOCK_CAUSE_CONNECTION,
                            redlock_tls_has_answered(connection->tls)
                                ? "connected, but the TLS handshake was not complete within %lld ms"
                                : "connected, but no answer to the TLS handshake within %lld ms; is this a TLS port?",
                            (long long)node->options.connect_timeout_ms);
}
