/* Why TLS failed, in words. */
#include "node/tls_failure.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

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

/* What the node sent in place of going on. */
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
