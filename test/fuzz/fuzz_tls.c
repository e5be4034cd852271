/* Any bytes that a node sends below TLS end the connection with a sentence, or wait for more: they
 * never become bytes of the stream. Bytes that it sends in TLS come out as they went in. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "server/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fits into the buffers of a socket pair: nobody reads meanwhile. */
#define INPUT_MAX 16384
#define READ_SIZE 16384

/* Bits of the first byte. The second one chooses the size of pieces, or of records. */
enum { SECURED = 1, HONEST = 2, TLS12 = 4, UPDATES = 8 };

/* Our side of the socket pair is client; the node's is node, with its own TLS in memory. */
struct pair {
    int client, node;
    struct redlock_tls *tls;
    SSL *ssl;
    BIO *in, *out;
};

static struct redlock_tls_context *client_context;
static SSL_CTX *node_context;

/* A key, and a certificate of it for nobody: the client does not verify. */
static void make_contexts(void) {
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    X509 *certificate = X509_new();
    const redlock_tls_options options = {.size = sizeof options, .min_version = REDLOCK_TLS_1_2};
    char error[256];
    assert(maker != NULL && EVP_PKEY_keygen_init(maker) == 1 &&
           EVP_PKEY_CTX_set_ec_paramgen_curve_nid(maker, NID_X9_62_prime256v1) == 1 &&
           EVP_PKEY_keygen(maker, &key) == 1);
    assert(certificate != NULL && X509_set_pubkey(certificate, key) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), 0) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), 3600) != NULL &&
           X509_sign(certificate, key, EVP_sha256()) > 0);
    node_context = SSL_CTX_new(TLS_server_method());
    assert(node_context != NULL && SSL_CTX_use_certificate(node_context, certificate) == 1 &&
           SSL_CTX_use_PrivateKey(node_context, key) == 1);
    EVP_PKEY_CTX_free(maker);
    EVP_PKEY_free(key);
    X509_free(certificate);
    const int code =
        redlock_tls_context_new(&options, &client_context, &(struct redlock_error_text){error, sizeof error});
    assert(code == REDLOCK_OK);
}

static void open_pair(struct pair *pair, unsigned mode) {
    int ends[2];
    const int made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
    assert(made == 0);
    pair->client = ends[0];
    pair->node = ends[1];
    pair->tls = redlock_tls_new(client_context, "127.0.0.1", pair->client);
    pair->ssl = SSL_new(node_context);
    pair->in = BIO_new(BIO_s_mem());
    pair->out = BIO_new(BIO_s_mem());
    assert(pair->tls != NULL && pair->ssl != NULL && pair->in != NULL && pair->out != NULL);
    SSL_set_bio(pair->ssl, pair->in, pair->out);
    SSL_set_accept_state(pair->ssl);
    if ((mode & TLS12) != 0) {
        (void)SSL_set_max_proto_version(pair->ssl, TLS1_2_VERSION);
    }
}

static void close_pair(struct pair *pair) {
    redlock_tls_free(pair->tls);
    SSL_free(pair->ssl);
    (void)close(pair->client);
    (void)close(pair->node);
    ERR_clear_error();
}

/* What the client has to say reaches the node. */
static void hear_client(struct pair *pair) {
    struct redlock_outbox *wire = &pair->tls->wire;
    const size_t size = redlock_outbox_size(wire);
    if (size > 0) {
        const int took = BIO_write(pair->in, wire->bytes + wire->head, (int)size);
        assert(took == (int)size);
        redlock_outbox_wrote(wire, size);
    }
}

static void send_bytes(const struct pair *pair, const void *bytes, size_t size) {
    const ssize_t sent = size > 0 ? write(pair->node, bytes, size) : 0;
    assert(sent == (ssize_t)size);
}

/* What the node has to say reaches the client's socket. */
static void send_records(struct pair *pair) {
    char records[4096];
    for (int got; (got = BIO_read(pair->out, records, sizeof records)) > 0;) {
        send_bytes(pair, records, (size_t)got);
    }
}

static void secure(struct pair *pair) {
    enum redlock_tls_progress progress = REDLOCK_TLS_WAITING;
    for (int turns = 0; turns < 8 && (progress != REDLOCK_TLS_SECURED || !SSL_is_init_finished(pair->ssl)); turns++) {
        if (progress == REDLOCK_TLS_WAITING) {
            progress = redlock_tls_handshake(pair->tls);
        }
        hear_client(pair);
        (void)SSL_do_handshake(pair->ssl);
        send_records(pair);
    }
    assert(progress == REDLOCK_TLS_SECURED && SSL_is_init_finished(pair->ssl));
}

static void check_failure(const struct pair *pair) {
    const char *text = pair->tls->failure.text;
    const size_t size = strnlen(text, REDLOCK_TLS_FAILURE_SIZE);
    assert(size > 0 && size < REDLOCK_TLS_FAILURE_SIZE);
    for (size_t i = 0; i < size; i++) {
        assert((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
    }
}

/* Any bytes in place of the node's handshake: it never succeeds. */
static void before(struct pair *pair, const uint8_t *bytes, size_t size, size_t piece) {
    enum redlock_tls_progress progress = redlock_tls_handshake(pair->tls);
    assert(progress == REDLOCK_TLS_WAITING && redlock_outbox_size(&pair->tls->wire) > 0);
    for (size_t at = 0; at < size && progress == REDLOCK_TLS_WAITING; at += piece) {
        send_bytes(pair, bytes + at, size - at < piece ? size - at : piece);
        progress = redlock_tls_handshake(pair->tls);
        assert(progress != REDLOCK_TLS_SECURED);
    }
    if (progress == REDLOCK_TLS_WAITING) {
        (void)shutdown(pair->node, SHUT_WR);
        progress = redlock_tls_handshake(pair->tls);
    }
    assert(progress == REDLOCK_TLS_FAILED);
    check_failure(pair);
}

/* Any bytes behind the node's handshake: none of them comes out. */
static void behind(struct pair *pair, const uint8_t *bytes, size_t size, size_t piece) {
    char buffer[READ_SIZE];
    for (size_t at = 0; at < size; at += piece) {
        send_bytes(pair, bytes + at, size - at < piece ? size - at : piece);
        pair->tls->drained = false;
        const ssize_t got = redlock_tls_read(pair->tls, buffer, sizeof buffer);
        assert(got <= 0);
        if (got == 0 || errno != EAGAIN) {
            if (got < 0) {
                check_failure(pair);
            }
            return;
        }
    }
}

/* Reads all that has come, in pieces of this size. */
static size_t read_all(struct pair *pair, uint8_t *out, size_t room, size_t piece) {
    size_t total = 0;
    ssize_t got;
    pair->tls->drained = false;
    while ((got = redlock_tls_read(pair->tls, (char *)out + total, piece < room - total ? piece : room - total)) > 0) {
        total += (size_t)got;
    }
    assert(got < 0 && errno == EAGAIN && !redlock_tls_has_unread(pair->tls));
    return total;
}

/* Both ways, in records and pieces of any size, with new keys in between. */
static void through(struct pair *pair, const uint8_t *bytes, size_t size, size_t piece, bool updates) {
    static uint8_t out[INPUT_MAX + 1];
    size_t total = 0;
    for (size_t at = 0; at < size; at += piece) {
        const size_t length = size - at < piece ? size - at : piece;
        if (updates && SSL_version(pair->ssl) == TLS1_3_VERSION) {
            const int kind = bytes[at] % 2 == 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED;
            const int asked = SSL_key_update(pair->ssl, kind);
            assert(asked == 1);
        }
        const int wrote = SSL_write(pair->ssl, bytes + at, (int)length);
        assert(wrote == (int)length);
        send_records(pair);
        if (bytes[at] % 3 == 0 || at / piece % 32 == 0) { /* the socket's buffer is small */
            total += read_all(pair, out + total, sizeof out - total, 1 + bytes[at]);
            hear_client(pair);
        }
    }
    total += read_all(pair, out + total, sizeof out - total, READ_SIZE);
    assert(total == size && memcmp(out, bytes, size) == 0);
    if (size > 0) {
        const int error = redlock_tls_write(pair->tls, (const char *)bytes, size);
        assert(error == 0);
        hear_client(pair);
        const int got = SSL_read(pair->ssl, out, (int)sizeof out);
        assert(got == (int)size && memcmp(out, bytes, size) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct pair pair;
    if (size < 2 || size > INPUT_MAX) {
        return 0;
    }
    if (client_context == NULL) {
        make_contexts();
    }
    const unsigned mode = data[0];
    const size_t piece = (size_t)data[1] * data[1] / 4 + 1;
    open_pair(&pair, mode);
    if ((mode & SECURED) == 0) {
        before(&pair, data + 2, size - 2, piece);
    } else {
        secure(&pair);
        if ((mode & HONEST) == 0) {
            behind(&pair, data + 2, size - 2, piece);
        } else {
            through(&pair, data + 2, size - 2, piece, (mode & UPDATES) != 0);
        }
    }
    close_pair(&pair);
    return 0;
}
