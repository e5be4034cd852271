/* TLS on one connection: bytes go in plain and leave as records, and back. */
#ifndef REDLOCK_SERVER_TLS_H
#define REDLOCK_SERVER_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"
#include "server/outbox.h"
#include "server/tls_context.h"

/* The most bytes that one record holds. */
#define REDLOCK_TLS_RECORD_MAX 16384

#define REDLOCK_TLS_FAILURE_SIZE 320

/* REDLOCK_CAUSE_TLS: the settings of one side must change. Else it may pass. */
struct redlock_tls_failure {
    enum redlock_cause cause;
    char text[REDLOCK_TLS_FAILURE_SIZE];
};

/* What is known of the connection when it fails. */
struct redlock_tls_scene {
    const char *name;     /* that the certificate must have */
    unsigned long error;  /* OpenSSL's first one; 0 for none */
    long verified;        /* what came of checking the certificate: an X509_V_… */
    bool in_handshake;    /* TLS's own */
    bool was_asked;       /* the server asked for our certificate */
    bool has_certificate; /* we have one */
    bool stream_ended;    /* below TLS, with stream_error */
    int stream_error;     /* an errno; 0: the server closed the connection */
};

/* Says it in words. Pure. */
void redlock_tls_explain(const struct redlock_tls_scene *scene, struct redlock_tls_failure *failure);

struct redlock_tls;

/* TLS on this connected socket with the server at `host`; both outlive it. NULL without memory. */
struct redlock_tls *redlock_tls_new(struct redlock_tls_context *context, const char *host, int fd);

/* Sends nothing, so a forked child may do it. */
void redlock_tls_free(struct redlock_tls *tls);

enum redlock_tls_progress {
    REDLOCK_TLS_WAITING, /* for bytes of the server */
    REDLOCK_TLS_SECURED,
    REDLOCK_TLS_FAILED /* see redlock_tls_failure() */
};

/* Begins the handshake, or goes on with what has come. What it has to say goes to the wire. */
enum redlock_tls_progress redlock_tls_handshake(struct redlock_tls *tls);

/* Returns whether the server has answered the first message of the handshake. */
bool redlock_tls_has_answered(const struct redlock_tls *tls);

/* The records that wait for the socket. The owner writes them. */
struct redlock_outbox *redlock_tls_wire(struct redlock_tls *tls);

/* Makes one record of 1 to REDLOCK_TLS_RECORD_MAX bytes, and appends it to the wire. Returns 0 or
 * an errno: EPROTO means redlock_tls_failure(). */
int redlock_tls_write(struct redlock_tls *tls, const char *bytes, size_t size);

/* Like redlock_stream_read(). It may have something to say then: see the wire. EPROTO means
 * redlock_tls_failure(). */
ssize_t redlock_tls_read(struct redlock_tls *tls, char *buffer, size_t size) __attribute__((noinline, cold));

/* After a read that found the socket empty, no other one looks until this. */
void redlock_tls_look_again(struct redlock_tls *tls);

/* Returns whether another read may find bytes, here or in the socket. */
bool redlock_tls_has_more(const struct redlock_tls *tls);

/* Returns whether bytes were read from the socket and not yet from here: no event tells of them. */
bool redlock_tls_has_unread(const struct redlock_tls *tls);

const struct redlock_tls_failure *redlock_tls_failure(const struct redlock_tls *tls);

/* "TLSv1.3" */
const char *redlock_tls_version_name(const struct redlock_tls *tls);

#endif
