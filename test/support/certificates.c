/* Certificates for the tests of TLS. */
#include "certificates.h"

#include <limits.h>
#include <stdio.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "support.h"

#define DAY_S 86400L

static void must(bool done, const char *what) {
    if (!done) {
        support_fatal("certificates: %s: %s", what, ERR_reason_error_string(ERR_peek_last_error()));
    }
}

static EVP_PKEY *make_key(void) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    must(context != NULL && EVP_PKEY_keygen_init(context) == 1 &&
             EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1 &&
             EVP_PKEY_keygen(context, &key) == 1,
         "a key");
    EVP_PKEY_CTX_free(context);
    return key;
}

static FILE *open_file(const char *folder, const char *name, const char *suffix, const char *mode) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s.%s", folder, name, suffix);
    FILE *file = fopen(path, mode);
    must(file != NULL, path);
    return file;
}

static void extend(X509 *certificate, int kind, const char *value) {
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, kind, value);
    must(extension != NULL && X509_add_ext(certificate, extension, -1) == 1, value);
    X509_EXTENSION_free(extension);
}

static X509 *make_certificate(const char *name, EVP_PKEY *key, const struct certificate_options *options) {
    unsigned char serial[8];
    const bool dated = options->from_s != 0 || options->until_s != 0;
    X509 *certificate = X509_new();
    must(certificate != NULL && RAND_bytes(serial, sizeof serial) == 1, "a serial number");
    serial[0] &= 0x7f;
    BIGNUM *number = BN_bin2bn(serial, sizeof serial, NULL);
    must(number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL, "a serial number");
    BN_free(number);
    must(X509_set_version(certificate, 2) == 1 &&
             X509_gmtime_adj(X509_getm_notBefore(certificate), dated ? options->from_s : -DAY_S) != NULL &&
             X509_gmtime_adj(X509_getm_notAfter(certificate), dated ? options->until_s : DAY_S) != NULL &&
             X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                                        (const unsigned char *)name, -1, -1, 0) == 1 &&
             X509_set_pubkey(certificate, key) == 1,
         "a certificate");
    extend(certificate, NID_basic_constraints, options->authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (options->alternatives != NULL) {
        extend(certificate, NID_subject_alt_name, options->alternatives);
    }
    return certificate;
}

static void write_files(const char *folder, const char *name, X509 *certificate, EVP_PKEY *key) {
    FILE *out = open_file(folder, name, "crt", "w");
    must(PEM_write_X509(out, certificate) == 1 && fclose(out) == 0, "a file");
    out = open_file(folder, name, "key", "w");
    must(PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(out) == 0, "a file");
}

void certificate_make(const char *folder, const char *name, const char *signer,
                      const struct certificate_options *options) {
    static const struct certificate_options plain;
    X509 *issuer = NULL;
    EVP_PKEY *issuer_key = NULL, *key = make_key();
    options = options == NULL ? &plain : options;
    X509 *certificate = make_certificate(name, key, options);
    if (signer != NULL) {
        FILE *in = open_file(folder, signer, "crt", "r");
        issuer = PEM_read_X509(in, NULL, NULL, NULL);
        (void)fclose(in);
        in = open_file(folder, signer, "key", "r");
        issuer_key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
        (void)fclose(in);
        must(issuer != NULL && issuer_key != NULL, signer);
    }
    must(X509_set_issuer_name(certificate, X509_get_subject_name(issuer != NULL ? issuer : certificate)) == 1 &&
             X509_sign(certificate, issuer_key != NULL ? issuer_key : key, EVP_sha256()) > 0,
         "a signature");
    write_files(folder, name, certificate, key);
    X509_free(certificate);
    X509_free(issuer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(issuer_key);
}
