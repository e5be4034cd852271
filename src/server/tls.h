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

/*
 * OpenSSL's own BIO for sockets raises SIGPIPE (R19), and makes SSL_write() fail half-way when the
 * socket is full. Ours always takes what OpenSSL writes: it goes to the wire. So only a read ever
 * waits, and only for the server.
 */
struct redlock_tls {
    struct redlock_tls_context *context;
    struct ssl_st *ssl;
    struct bio_method_st *method;
    int fd;
    struct redlock_outbox wire; /* the records that wait for the socket; the owner writes them */
    /* The socket had no more to read: no other read looks until the owner clears this. */
    bool drained;
    struct redlock_tls_scene scene; /* of the failure, as far as it is known by now */
    struct redlock_tls_failure failure;
};

/* TLS on this connected socket with the server at `host`; both outlive it. NULL without memory. */
struct redlock_tls *redlock_tls_new(struct redlock_tls_context *context, const char *host, int fd);

/* Sends nothing, so a forked child may do it. */
void redlock_tls_free(struct redlock_tls *tls);

enum redlock_tls_progress {
    REDLOCK_TLS_WAITING, /* for bytes of the server */
    REDLOCK_TLS_SECURED,
    REDLOCK_TLS_FAILED /* see `failure` */
};

/* Begins the handshake, or goes on with what has come. What it has to say goes to the wire. */
enum redlock_tls_progress redlock_tls_handshake(struct redlock_tls *tls);

/* Returns whether the server has answered the first message of the handshake. */
bool redlock_tls_has_answered(const struct redlock_tls *tls);

/* Makes one record of 1 to REDLOCK_TLS_RECORD_MAX bytes, and appends it to the wire. Returns 0 or
 * an errno: EPROTO means `failure`. */
int redlock_tls_write(struct redlock_tls *tls, const char *bytes, size_t size);

/* Like redlock_stream_read(). It may have something to say then: see the wire. EPROTO means
 * `failure`. */
ssize_t redlock_tls_read(struct redlock_tls *tls, char *buffer, size_t size) __attribute__((noinline, cold));

/* Returns whether bytes were read from the socket and not yet from here: no event tells of them. */
bool redlock_tls_has_unread(const struct redlock_tls *tls);

/* "TLSv1.3" */
const char *redlock_tls_version_name(const struct redlock_tls *tls);

#endif
