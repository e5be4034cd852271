/* What is said when TLS fails, and whether somebody must act. */
#include "test.h"
#include <errno.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "server/tls.h"

#define SSL_ERROR(reason) ERR_PACK(ERR_LIB_SSL, 0, reason)
#define ALERT(number)     SSL_ERROR(SSL_AD_REASON_OFFSET + (number))

static void assert_explained(struct redlock_tls_scene scene, enum redlock_cause cause, const char *words) {
    struct redlock_tls_failure failure;
    memset(&failure, 'x', sizeof failure);
    scene.name = "db.example";
    redlock_tls_explain(&scene, &failure);
    assert_contains(failure.text, words);
    assert_int_equal(failure.cause, cause);
}

static int before(UNUSED void **state) {
    (void)OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS, NULL);
    return 0;
}

TESTS_WITH(before, NULL);

TEST(a_certificate_is_not_accepted) {
    static const struct {
        long verified;
        const char *words;
    } cases[] = {
        {X509_V_ERR_CERT_HAS_EXPIRED, "its certificate is not accepted: certificate has expired"},
        {X509_V_ERR_CERT_NOT_YET_VALID, "its certificate is not accepted: certificate is not yet valid"},
        {X509_V_ERR_HOSTNAME_MISMATCH, "ostname mismatch (not for 'db.example')"},
        {X509_V_ERR_IP_ADDRESS_MISMATCH, "IP address mismatch (not for 'db.example')"},
        {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "is its CA in ca_file or ca_dir"},
        {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "is its CA in ca_file or ca_dir"},
        {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "is its CA in ca_file or ca_dir"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_explained((struct redlock_tls_scene){.error = SSL_ERROR(SSL_R_CERTIFICATE_VERIFY_FAILED),
                                                    .verified = cases[i].verified,
                                                    .in_handshake = true},
                         REDLOCK_CAUSE_TLS, cases[i].words);
    }
}

TEST(a_lack_of_memory_is_ours) {
    assert_explained((struct redlock_tls_scene){.error = SSL_ERROR(SSL_R_CERTIFICATE_VERIFY_FAILED),
                                                .verified = X509_V_ERR_OUT_OF_MEM,
                                                .in_handshake = true},
                     REDLOCK_CAUSE_OURS, "no memory to check its certificate");
}

TEST(an_alert_says_what_the_node_wants) {
    static const struct {
        int alert;
        bool was_asked, has_certificate;
        enum redlock_cause cause;
        const char *words;
    } cases[] = {
        {116, true, false, REDLOCK_CAUSE_TLS, "alert certificate required): set cert_file"},
        {40, true, false, REDLOCK_CAUSE_TLS, "wants a client certificate"},
        {42, true, false, REDLOCK_CAUSE_TLS, "wants a client certificate"},
        {40, false, false, REDLOCK_CAUSE_TLS, "refused the TLS handshake"},
        {40, true, true, REDLOCK_CAUSE_TLS, "refused the TLS handshake"},
        {71, false, false, REDLOCK_CAUSE_TLS, "refused the TLS handshake"},
        {42, true, true, REDLOCK_CAUSE_TLS, "refused our certificate"},
        {45, true, true, REDLOCK_CAUSE_TLS, "alert certificate expired"},
        {48, true, true, REDLOCK_CAUSE_TLS, "alert unknown ca"},
        {49, true, true, REDLOCK_CAUSE_TLS, "refused our certificate"},
        {70, false, false, REDLOCK_CAUSE_TLS, "no TLS version in common"},
        {112, false, false, REDLOCK_CAUSE_TLS, "does not know the name 'db.example'"},
        {80, false, false, REDLOCK_CAUSE_CONNECTION, "the node ended TLS: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_explained((struct redlock_tls_scene){.error = ALERT(cases[i].alert),
                                                    .was_asked = cases[i].was_asked,
                                                    .has_certificate = cases[i].has_certificate,
                                                    .in_handshake = cases[i].alert != 116},
                         cases[i].cause, cases[i].words);
    }
}

TEST(the_wrong_port_is_guessed) {
    struct redlock_tls_scene scene = {.error = SSL_ERROR(SSL_R_WRONG_VERSION_NUMBER), .in_handshake = true};
    assert_explained(scene, REDLOCK_CAUSE_NOT_A_NODE, "is this a TLS port?");
    scene.in_handshake = false;
    assert_explained(scene, REDLOCK_CAUSE_CONNECTION, "an error in TLS: wrong version number");
}

TEST(the_end_of_the_stream_comes_before_what_openssl_says) {
    struct redlock_tls_scene scene = {
        .error = SSL_ERROR(SSL_R_BAD_LENGTH), .stream_ended = true, .in_handshake = true, .was_asked = true};
    assert_explained(scene, REDLOCK_CAUSE_CONNECTION,
                     "connection closed by the node in the TLS handshake; it asks for a client certificate");
    scene.has_certificate = true;
    scene.stream_error = ECONNRESET;
    assert_explained(scene, REDLOCK_CAUSE_CONNECTION, "connection reset by peer in the TLS handshake");
    scene.in_handshake = false;
    assert_explained(scene, REDLOCK_CAUSE_CONNECTION, "connection reset by peer");
    scene.stream_error = ENOMEM;
    assert_explained(scene, REDLOCK_CAUSE_OURS, "no memory");
}

TEST(other_errors_are_openssls) {
    struct redlock_tls_scene scene = {.error = SSL_ERROR(ERR_R_MALLOC_FAILURE), .in_handshake = true};
    assert_explained(scene, REDLOCK_CAUSE_OURS, "no memory in the TLS handshake");
    scene.error = SSL_ERROR(SSL_R_UNSUPPORTED_PROTOCOL);
    assert_explained(scene, REDLOCK_CAUSE_TLS, "no TLS version in common (unsupported protocol)");
    scene.error = SSL_ERROR(SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC);
    scene.in_handshake = false;
    assert_explained(scene, REDLOCK_CAUSE_CONNECTION, "an error in TLS: decryption failed or bad record mac");
    scene.error = 0;
    assert_explained(scene, REDLOCK_CAUSE_CONNECTION, "does not say why");
    /* Verification was not what failed. */
    scene.error = SSL_ERROR(SSL_R_CERTIFICATE_VERIFY_FAILED);
    assert_explained(scene, REDLOCK_CAUSE_CONNECTION, "certificate verify failed");
}
