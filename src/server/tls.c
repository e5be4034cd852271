/* TLS on one connection, by OpenSSL. */
#include "server/tls.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "server/stream.h"

/* RFC 8446; OpenSSL 1.1.1 has no name for each. */
enum {
    ALERT_HANDSHAKE_FAILURE = 40,
    ALERT_BAD_CERTIFICATE = 42,
    ALERT_CERTIFICATE_UNKNOWN = 46,
    ALERT_UNKNOWN_CA = 48,
    ALERT_ACCESS_DENIED = 49,
    ALERT_PROTOCOL_VERSION = 70,
    ALERT_INSUFFICIENT_SECURITY = 71,
    ALERT_UNRECOGNIZED_NAME = 112,
    ALERT_CERTIFICATE_REQUIRED = 116
};

__attribute__((format(printf, 3, 4))) static void say(struct redlock_tls_failure *failure, enum redlock_cause cause,
                                                      const char *format, ...) {
    va_list arguments;
    failure->cause = cause;
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
}

static void explain_certificate(const struct redlock_tls_scene *scene, struct redlock_tls_failure *failure) {
    const char *why = X509_verify_cert_error_string(scene->verified);
    switch (scene->verified) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        say(failure, REDLOCK_CAUSE_TLS, "its certificate is not accepted: %s (not for '%s')", why, scene->name);
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        say(failure, REDLOCK_CAUSE_TLS,
            "its certificate is not accepted: %s; is its CA in ca_file or ca_dir (--cacert, --cacertdir)?", why);
        break;
    case X509_V_ERR_OUT_OF_MEM:
        say(failure, REDLOCK_CAUSE_OURS, "no memory to check its certificate");
        break;
    default:
        say(failure, REDLOCK_CAUSE_TLS, "its certificate is not accepted: %s", why);
        break;
    }
}

/* What the server sent in place of going on. */
static void explain_alert(const struct redlock_tls_scene *scene, int alert, const char *words,
                          struct redlock_tls_failure *failure) {
    const bool about_certificate = (alert >= ALERT_BAD_CERTIFICATE && alert <= ALERT_CERTIFICATE_UNKNOWN) ||
                                   alert == ALERT_UNKNOWN_CA || alert == ALERT_ACCESS_DENIED;
    if (alert == ALERT_CERTIFICATE_REQUIRED ||
        (scene->was_asked && !scene->has_certificate && (about_certificate || alert == ALERT_HANDSHAKE_FAILURE))) {
        say(failure, REDLOCK_CAUSE_TLS,
            "the node wants a client certificate (%s): set cert_file and key_file (--cert, --key)", words);
    } else if (about_certificate) {
        say(failure, REDLOCK_CAUSE_TLS, "the node refused our certificate: %s", words);
    } else if (alert == ALERT_PROTOCOL_VERSION) {
        say(failure, REDLOCK_CAUSE_TLS, "the node and we have no TLS version in common (%s)", words);
    } else if (alert == ALERT_UNRECOGNIZED_NAME) {
        say(failure, REDLOCK_CAUSE_TLS, "the node does not know the name '%s' (%s): see server_name (--sni)",
            scene->name, words);
    } else if (alert == ALERT_HANDSHAKE_FAILURE || alert == ALERT_INSUFFICIENT_SECURITY) {
        say(failure, REDLOCK_CAUSE_TLS, "the node refused the TLS handshake: %s", words);
    } else {
        say(failure, REDLOCK_CAUSE_CONNECTION, "the node ended TLS: %s", words);
    }
}

static void explain_error(const struct redlock_tls_scene *scene, struct redlock_tls_failure *failure) {
    const int reason = ERR_GET_REASON(scene->error);
    const char *words = ERR_reason_error_string(scene->error);
    const char *where = scene->in_handshake ? "in the TLS handshake" : "in TLS";
    words = words == NULL ? "OpenSSL does not say why" : words;
    if (reason == ERR_R_MALLOC_FAILURE) {
        say(failure, REDLOCK_CAUSE_OURS, "no memory %s", where);
    } else if (ERR_GET_LIB(scene->error) != ERR_LIB_SSL) {
        say(failure, REDLOCK_CAUSE_CONNECTION, "an error %s: %s", where, words);
    } else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && scene->verified != X509_V_OK) {
        explain_certificate(scene, failure);
    } else if (reason >= SSL_AD_REASON_OFFSET && reason <= SSL_AD_REASON_OFFSET + 255) {
        explain_alert(scene, reason - SSL_AD_REASON_OFFSET, words, failure);
    } else if (reason == SSL_R_WRONG_VERSION_NUMBER && scene->in_handshake) {
        say(failure, REDLOCK_CAUSE_NOT_A_NODE, "the node does not answer in TLS (%s); is this a TLS port?", words);
    } else if (reason == SSL_R_UNSUPPORTED_PROTOCOL) {
        say(failure, REDLOCK_CAUSE_TLS, "the node and we have no TLS version in common (%s)", words);
    } else {
        say(failure, REDLOCK_CAUSE_CONNECTION, "an error %s: %s", where, words);
    }
}

void redlock_tls_explain(const struct redlock_tls_scene *scene, struct redlock_tls_failure *failure) {
    const char *where = scene->in_handshake ? " in the TLS handshake" : "";
    const char *hint = scene->was_asked && !scene->has_certificate
                           ? "; it asks for a client certificate (cert_file, key_file; --cert, --key)"
                           : "";
    if (!scene->stream_ended) {
        explain_error(scene, failure);
    } else if (scene->stream_error == ENOMEM) {
        say(failure, REDLOCK_CAUSE_OURS, "no memory%s", where);
    } else if (scene->stream_error == 0) {
        say(failure, REDLOCK_CAUSE_CONNECTION, "connection closed by the node%s%s", where, hint);
    } else {
        say(failure, REDLOCK_CAUSE_CONNECTION, "%s%s%s", strerror(scene->stream_error), where, hint);
        failure->text[0] = (char)tolower((unsigned char)failure->text[0]);
    }
}

/* OpenSSL reads the thread's queue of errors to see what came of a call. */
static void forget_errors(void) {
    if (ERR_peek_error() != 0) {
        ERR_clear_error();
    }
}

static int end_stream(struct redlock_tls *tls, int error) {
    tls->scene.stream_ended = true;
    tls->scene.stream_error = error;
    return -1;
}

static int on_write(BIO *bio, const char *bytes, int size) {
    struct redlock_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!redlock_outbox_append(&tls->wire, bytes, (size_t)size)) {
        return end_stream(tls, ENOMEM);
    }
    return size;
}

static int on_read(BIO *bio, char *buffer, int size) {
    struct redlock_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!tls->drained) {
        const ssize_t got = redlock_stream_read(tls->fd, buffer, (size_t)size);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) {
            return end_stream(tls, got == 0 ? 0 : errno);
        }
        /* As with plain sockets, less than asked for was all. */
        tls->drained = got < size;
        if (got > 0) {
            return (int)got;
        }
    }
    BIO_set_retry_read(bio);
    return -1;
}

static long on_ctrl(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH; /* the owner of the wire flushes */
}

static int on_asked(SSL *ssl, void *data) {
    (void)ssl;
    ((struct redlock_tls *)data)->scene.was_asked = true;
    return 1;
}

static bool attach(struct redlock_tls *tls) {
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "redlock");
    BIO *bio = NULL;
    if (tls->method != NULL && BIO_meth_set_write(tls->method, on_write) == 1 &&
        BIO_meth_set_read(tls->method, on_read) == 1 && BIO_meth_set_ctrl(tls->method, on_ctrl) == 1) {
        bio = BIO_new(tls->method);
    }
    if (bio == NULL) {
        return false;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_cert_cb(tls->ssl, on_asked, tls);
    return true;
}

struct redlock_tls *redlock_tls_new(struct redlock_tls_context *context, const char *host, int fd) {
    assert(context != NULL && fd >= 0);
    struct redlock_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        return NULL;
    }
    tls->context = context;
    tls->fd = fd;
    tls->scene.name = redlock_tls_context_name(context, host);
    tls->ssl = redlock_tls_context_connect(context, host);
    if (tls->ssl == NULL || !attach(tls)) {
        ERR_clear_error();
        redlock_tls_free(tls);
        return NULL;
    }
    return tls;
}

void redlock_tls_free(struct redlock_tls *tls) {
    if (tls == NULL) {
        return;
    }
    SSL_free(tls->ssl); /* replies end by themselves, so nobody needs a close_notify */
    BIO_meth_free(tls->method);
    redlock_outbox_clear(&tls->wire);
    free(tls);
}

bool redlock_tls_has_answered(const struct redlock_tls *tls) {
    const OSSL_HANDSHAKE_STATE state = SSL_get_state(tls->ssl);
    return state != TLS_ST_BEFORE && state != TLS_ST_CW_CLNT_HELLO;
}

/* Writes down why. The error queue is the thread's, so it is left empty. */
static void fail(struct redlock_tls *tls, bool in_handshake) {
    tls->scene.error = ERR_peek_error();
    tls->scene.verified = SSL_get_verify_result(tls->ssl);
    tls->scene.in_handshake = in_handshake;
    tls->scene.has_certificate = SSL_get_certificate(tls->ssl) != NULL;
    redlock_tls_explain(&tls->scene, &tls->failure);
    ERR_clear_error();
}

enum redlock_tls_progress redlock_tls_handshake(struct redlock_tls *tls) {
    forget_errors();
    const int done = SSL_do_handshake(tls->ssl);
    tls->drained = false;
    if (done == 1) {
        redlock_tls_context_judge(tls->context, true);
        return REDLOCK_TLS_SECURED;
    }
    if (SSL_get_error(tls->ssl, done) == SSL_ERROR_WANT_READ) {
        return REDLOCK_TLS_WAITING;
    }
    redlock_tls_context_judge(tls->context, false);
    fail(tls, true);
    return REDLOCK_TLS_FAILED;
}

int redlock_tls_write(struct redlock_tls *tls, const char *bytes, size_t size) {
    size_t taken = 0;
    assert(size > 0 && size <= REDLOCK_TLS_RECORD_MAX);
    forget_errors();
    if (SSL_write_ex(tls->ssl, bytes, size, &taken) == 1) {
        assert(taken == size);
        return 0;
    }
    fail(tls, false);
    return EPROTO;
}

ssize_t redlock_tls_read(struct redlock_tls *tls, char *buffer, size_t size) {
    size_t got = 0;
    forget_errors();
    if (SSL_read_ex(tls->ssl, buffer, size, &got) == 1) {
        return (ssize_t)got;
    }
    switch (SSL_get_error(tls->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        break;
    }
    if (tls->scene.stream_ended && tls->scene.stream_error == 0) {
        ERR_clear_error();
        return 0; /* an end without close_notify is an end */
    }
    fail(tls, false);
    errno = EPROTO;
    return -1;
}

bool redlock_tls_has_unread(const struct redlock_tls *tls) {
    return SSL_has_pending(tls->ssl) == 1;
}

const char *redlock_tls_version_name(const struct redlock_tls *tls) {
    return SSL_get_version(tls->ssl);
}
