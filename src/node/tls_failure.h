/* Why TLS failed, in words. Pure. */
#ifndef REDLOCK_NODE_TLS_FAILURE_H
#define REDLOCK_NODE_TLS_FAILURE_H

#include <stdbool.h>

#include "base/text.h"

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
    bool was_asked;       /* the node asked for our certificate */
    bool has_certificate; /* we have one */
    bool stream_ended;    /* below TLS, with stream_error */
    int stream_error;     /* an errno; 0: the node closed the connection */
};

void redlock_tls_explain(const struct redlock_tls_scene *scene, struct redlock_tls_failure *failure);

#endif
