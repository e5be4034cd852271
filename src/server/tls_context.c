/* What the TLS connections of a manager share. */
#include "server/tls_context.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define NAME_SIZE 256

enum { CA_FILE, CA_DIR, CERT_FILE, KEY_FILE, FILES };

/* What changes when a file or a folder is written or replaced. All zero: it is not there. */
struct stamp {
    int64_t values[7];
};

/* Where an allocation fails, OpenSSL 3.0 may leave out a group of keys or a cipher and say nothing.
 * With the rest no handshake may be possible. */
enum trust { UNTRIED, DOUBTED, PROVEN };

struct redlock_tls_context {
    char *paths[FILES]; /* NULL for none */
    char *server_name;  /* likewise */
    redlock_tls_version min_version;
    bool verify;
    SSL_CTX *ssl;
    enum trust trust;     /* in `ssl` */
    char *watched[FILES]; /* the paths, or those of the system's store */
    struct stamp used[FILES];
    struct stamp warned[FILES]; /* of broken files: what the last warning was about */
};

static const char *const option_names[FILES] = {"ca_file", "ca_dir", "cert_file", "key_file"};

const char *redlock_tls_library(void) {
    return OpenSSL_version(OPENSSL_VERSION);
}

/* Says what OpenSSL has against a file: the errno, or else its last words. Returns false. */
static bool explain(struct redlock_error_text *failure, const char *option, const char *path) {
    unsigned long code, last = 0;
    const char *why = NULL;
    bool pem = false;
    while ((code = ERR_get_error()) != 0) {
        last = code;
        pem = pem || ERR_GET_LIB(code) == ERR_LIB_PEM || ERR_GET_REASON(code) == ERR_R_PEM_LIB;
        if (ERR_GET_LIB(code) == ERR_LIB_SYS) {
            why = strerror(ERR_GET_REASON(code));
        }
    }
    why = why != NULL ? why : ERR_reason_error_string(last);
    (void)redlock_fail(failure, REDLOCK_ERR_INVALID,
                       pem ? "%s '%s' has no PEM of the right kind (%s)" : "%s '%s' cannot be used: %s", option, path,
                       why == NULL ? "OpenSSL does not say why" : why);
    return false;
}

/* OpenSSL would ask at the terminal. */
static int refuse_passphrase(char *buffer, int size, int writing, void *asked) {
    (void)buffer, (void)size, (void)writing;
    *(bool *)asked = true;
    return -1;
}

static bool load_key(SSL_CTX *ssl, const char *path, struct redlock_error_text *failure) {
    bool encrypted = false;
    SSL_CTX_set_default_passwd_cb(ssl, refuse_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, &encrypted);
    const bool loaded =
        SSL_CTX_use_PrivateKey_file(ssl, path, SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(ssl) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
    if (encrypted) {
        (void)redlock_fail(
            failure, REDLOCK_ERR_INVALID,
            "key_file '%s' is encrypted, and nobody can be asked for its passphrase: decrypt it (openssl "
            "pkey -in FILE -out FILE) and protect it by its permissions",
            path);
    } else if (!loaded) {
        return explain(failure, option_names[KEY_FILE], path);
    }
    return loaded;
}

/* OpenSSL accepts a folder that is not there. */
static bool is_folder(const char *path, struct redlock_error_text *failure) {
    struct stat found;
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
        return true;
    }
    (void)redlock_fail(failure, REDLOCK_ERR_INVALID, "ca_dir '%s' is not a directory", path);
    return false;
}

static bool load_files(const struct redlock_tls_context *context, SSL_CTX *ssl, struct redlock_error_text *failure) {
    char *const *paths = context->paths;
    if (paths[CA_FILE] == NULL && paths[CA_DIR] == NULL && SSL_CTX_set_default_verify_paths(ssl) != 1) {
        return explain(failure, "the system's store of certificates", context->watched[CA_DIR]);
    }
    if (paths[CA_FILE] != NULL && SSL_CTX_load_verify_locations(ssl, paths[CA_FILE], NULL) != 1) {
        return explain(failure, option_names[CA_FILE], paths[CA_FILE]);
    }
    if (paths[CA_DIR] != NULL && !is_folder(paths[CA_DIR], failure)) {
        return false;
    }
    if (paths[CA_DIR] != NULL && SSL_CTX_load_verify_locations(ssl, NULL, paths[CA_DIR]) != 1) {
        return explain(failure, option_names[CA_DIR], paths[CA_DIR]);
    }
    if (paths[CERT_FILE] != NULL && SSL_CTX_use_certificate_chain_file(ssl, paths[CERT_FILE]) != 1) {
        return explain(failure, option_names[CERT_FILE], paths[CERT_FILE]);
    }
    return paths[KEY_FILE] == NULL || load_key(ssl, paths[KEY_FILE], failure);
}

/* Returns NULL with a sentence. */
static SSL_CTX *load(const struct redlock_tls_context *context, struct redlock_error_text *failure) {
    const int lowest = context->min_version == REDLOCK_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    ERR_clear_error();
    SSL_CTX *ssl = SSL_CTX_new(TLS_client_method());
    if (ssl == NULL || SSL_CTX_set_min_proto_version(ssl, lowest) != 1) {
        (void)redlock_fail(failure, REDLOCK_ERR_INVALID,
                           "OpenSSL cannot begin: no memory, or its own settings are wrong");
        SSL_CTX_free(ssl);
        ERR_clear_error();
        return NULL;
    }
    (void)SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ssl, 1); /* one read of the socket for a record, not two */
    SSL_CTX_set_verify(ssl, context->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!load_files(context, ssl, failure)) {
        SSL_CTX_free(ssl);
        ssl = NULL;
    }
    ERR_clear_error();
    return ssl;
}

static struct stamp stamp(const char *path) {
    struct stat found;
    if (path == NULL || stat(path, &found) != 0) {
        return (struct stamp){{0}};
    }
    return (struct stamp){{(int64_t)found.st_dev, (int64_t)found.st_ino, found.st_size, found.st_mtim.tv_sec,
                           found.st_mtim.tv_nsec, found.st_ctim.tv_sec, found.st_ctim.tv_nsec}};
}

static void stamp_all(const struct redlock_tls_context *context, struct stamp stamps[FILES]) {
    for (int i = 0; i < FILES; i++) {
        stamps[i] = stamp(context->watched[i]);
    }
}

static bool copy(char **to, const char *from) {
    *to = from == NULL ? NULL : strdup(from);
    return (*to == NULL) == (from == NULL);
}

/* The program may change its folder before the file is read again. */
static bool copy_path(char **to, const char *from) {
    char *folder = from == NULL || from[0] == '/' ? NULL : get_current_dir_name();
    if (folder == NULL) {
        return copy(to, from);
    }
    const size_t size = strlen(folder) + strlen(from) + 2;
    *to = malloc(size);
    if (*to != NULL) {
        (void)snprintf(*to, size, "%s/%s", folder, from);
    }
    free(folder);
    return *to != NULL;
}

/* Where OpenSSL has the system's store: its own rule. */
static const char *system_path(const char *variable, const char *fallback) {
    const char *path = secure_getenv(variable);
    return path != NULL ? path : fallback;
}

static bool copy_options(struct redlock_tls_context *context, const redlock_tls_options *options) {
    const char *paths[FILES] = {options->ca_file, options->ca_dir, options->cert_file, options->key_file};
    const char *system[FILES] = {system_path(X509_get_default_cert_file_env(), X509_get_default_cert_file()),
                                 system_path(X509_get_default_cert_dir_env(), X509_get_default_cert_dir())};
    const bool is_system = options->ca_file == NULL && options->ca_dir == NULL;
    context->min_version = options->min_version;
    context->verify = options->verify;
    bool copied = copy(&context->server_name, options->server_name);
    for (int i = 0; i < FILES && copied; i++) {
        copied = copy_path(&context->paths[i], paths[i]) &&
                 copy_path(&context->watched[i], is_system && i <= CA_DIR ? system[i] : paths[i]);
    }
    return copied;
}

int redlock_tls_context_new(const redlock_tls_options *options, struct redlock_tls_context **created,
                            struct redlock_error_text *failure) {
    struct redlock_tls_context *context = calloc(1, sizeof *context);
    /* OpenSSL would end itself at exit(), before handlers and threads that still release locks. */
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    if (context == NULL || !copy_options(context, options)) {
        redlock_tls_context_free(context);
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for TLS");
    }
    /* First the stamps: a file that changes meanwhile is read once more. */
    stamp_all(context, context->used);
    context->ssl = load(context, failure);
    if (context->ssl == NULL) {
        redlock_tls_context_free(context);
        return REDLOCK_ERR_INVALID;
    }
    *created = context;
    return REDLOCK_OK;
}

void redlock_tls_context_free(struct redlock_tls_context *context) {
    if (context == NULL) {
        return;
    }
    SSL_CTX_free(context->ssl);
    for (int i = 0; i < FILES; i++) {
        free(context->paths[i]);
        free(context->watched[i]);
    }
    free(context->server_name);
    free(context);
}

enum redlock_tls_files redlock_tls_context_refresh(struct redlock_tls_context *context,
                                                   struct redlock_error_text *failure) {
    struct stamp now[FILES];
    stamp_all(context, now);
    const bool changed = memcmp(now, context->used, sizeof now) != 0;
    if (!changed && context->trust != DOUBTED) {
        return REDLOCK_TLS_FILES_SAME;
    }
    SSL_CTX *fresh = load(context, failure);
    if (fresh != NULL) {
        SSL_CTX_free(context->ssl); /* connections keep theirs */
        context->ssl = fresh;
        context->trust = UNTRIED;
        memcpy(context->used, now, sizeof now);
        return changed ? REDLOCK_TLS_FILES_RENEWED : REDLOCK_TLS_FILES_SAME;
    }
    if (!changed || memcmp(now, context->warned, sizeof now) == 0) {
        return REDLOCK_TLS_FILES_SAME;
    }
    memcpy(context->warned, now, sizeof now);
    return REDLOCK_TLS_FILES_BROKEN;
}

void redlock_tls_context_judge(struct redlock_tls_context *context, bool done) {
    if (done) {
        context->trust = PROVEN;
    } else if (context->trust == UNTRIED) {
        context->trust = DOUBTED;
    }
}

const char *redlock_tls_context_name(const struct redlock_tls_context *context, const char *host) {
    return context->server_name != NULL ? context->server_name : host;
}

/* Certificates have no zones ("fe80::1%eth0") and no dot at the end of a name. */
static void bare_name(const char *name, char bare[NAME_SIZE]) {
    (void)snprintf(bare, NAME_SIZE, "%s", name);
    bare[strcspn(bare, "%")] = '\0';
    const size_t size = strlen(bare);
    if (size > 1 && bare[size - 1] == '.') {
        bare[size - 1] = '\0';
    }
}

static bool is_literal(const char *name) {
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

SSL *redlock_tls_context_connect(const struct redlock_tls_context *context, const char *host) {
    char name[NAME_SIZE];
    assert(context->ssl != NULL);
    ERR_clear_error();
    SSL *ssl = SSL_new(context->ssl);
    if (ssl == NULL) {
        ERR_clear_error();
        return NULL;
    }
    SSL_set_connect_state(ssl);
    /* Without memory it leaves only an error, and OpenSSL 3.2 would crash at the BIO then. */
    bool ready = ERR_peek_error() == 0;
    bare_name(redlock_tls_context_name(context, host), name);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (is_literal(name)) {
        ready = ready && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    } else {
        ready = ready && SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
    }
    if (!ready) {
        ERR_clear_error();
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}
