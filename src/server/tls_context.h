/* What the TLS connections of a manager share: its settings, and what was read from files. */
#ifndef REDLOCK_SERVER_TLS_CONTEXT_H
#define REDLOCK_SERVER_TLS_CONTEXT_H

#include <stdbool.h>

#include <redlock/redlock.h>

#include "base/check.h"

struct ssl_st;
struct redlock_tls_context;

/* Copies the options, which are checked, and reads the files. Returns REDLOCK_OK, or
 * REDLOCK_ERR_INVALID or REDLOCK_ERR_NO_MEMORY with a sentence. */
int redlock_tls_context_new(const redlock_tls_options *options, struct redlock_tls_context **context,
                            struct redlock_error_text *failure);
void redlock_tls_context_free(struct redlock_tls_context *context);

enum redlock_tls_files {
    REDLOCK_TLS_FILES_SAME,    /* or broken as they were when that was told */
    REDLOCK_TLS_FILES_RENEWED, /* the next connection uses them */
    REDLOCK_TLS_FILES_BROKEN   /* the old ones stay in use: a sentence says why */
};

/* Reads the files again if one of them has changed, or if what was read is in doubt. */
enum redlock_tls_files redlock_tls_context_refresh(struct redlock_tls_context *context,
                                                   struct redlock_error_text *failure);

/* What came of a handshake: what was read is in doubt while some have failed and none was done. */
void redlock_tls_context_judge(struct redlock_tls_context *context, bool done);

/* What the certificate of this host must name. */
const char *redlock_tls_context_name(const struct redlock_tls_context *context, const char *host);

/* OpenSSL's state of a new connection to this host. NULL without memory. */
struct ssl_st *redlock_tls_context_connect(const struct redlock_tls_context *context, const char *host);

#endif
