/* In place of TLS, where the library is built without it (REDLOCK_TLS=OFF). */
#include "server/tls.h"

/* Nobody has a context, so nobody has TLS on a connection. */

const char *redlock_tls_library(void) {
    return NULL;
}

int redlock_tls_context_new(const redlock_tls_options *options, struct redlock_tls_context **context,
                            struct redlock_error_text *failure) {
    (void)options, (void)context;
    return redlock_fail(failure, REDLOCK_ERR_INVALID,
                        "TLS (rediss://) is not possible: this library was built without it");
}

void redlock_tls_context_free(struct redlock_tls_context *context) {
    (void)context;
}

enum redlock_tls_files redlock_tls_context_refresh(struct redlock_tls_context *context,
                                                   struct redlock_error_text *failure) {
    (void)context, (void)failure;
    return REDLOCK_TLS_FILES_SAME;
}

struct redlock_tls *redlock_tls_new(struct redlock_tls_context *context, const char *host, int fd) {
    (void)context, (void)host, (void)fd;
    return NULL;
}

void redlock_tls_free(struct redlock_tls *tls) {
    (void)tls;
}

enum redlock_tls_progress redlock_tls_handshake(struct redlock_tls *tls) {
    (void)tls;
    return REDLOCK_TLS_FAILED;
}

bool redlock_tls_has_answered(const struct redlock_tls *tls) {
    (void)tls;
    return false;
}

int redlock_tls_write(struct redlock_tls *tls, const char *bytes, size_t size) {
    (void)tls, (void)bytes, (void)size;
    return -1;
}

ssize_t redlock_tls_read(struct redlock_tls *tls, char *buffer, size_t size) {
    (void)tls, (void)buffer, (void)size;
    return -1;
}

bool redlock_tls_has_unread(const struct redlock_tls *tls) {
    (void)tls;
    return false;
}

const char *redlock_tls_version_name(const struct redlock_tls *tls) {
    (void)tls;
    return "";
}
