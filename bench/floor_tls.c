/* TLS of the floor: OpenSSL straight on the sockets. */
#include "floor_tls.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "contender.h"

#define HEADER_SIZE 5 /* of a record */

/* Whole records, except that the last one may be incomplete. */
struct records {
    char *bytes;
    size_t begin, end, room;
};

struct floor_tls {
    SSL *ssl;
    int fd;
    bool sealed;
    struct records out, in;
    size_t sent; /* sealed requests whose replies are not yet checked */
};

SSL_CTX *floor_tls_begin(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context) {
        contender_fatal("no memory for TLS");
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1); /* one read of the socket for a record, not two */
    (void)signal(SIGPIPE, SIG_IGN);     /* OpenSSL writes without MSG_NOSIGNAL */
    return context;
}

void floor_tls_end(SSL_CTX *context) {
    SSL_CTX_free(context);
}

struct floor_tls *floor_tls_open(SSL_CTX *context, const char *ca_file, int fd, const char *at) {
    struct floor_tls *tls = calloc(1, sizeof *tls);
    char *host = strndup(at, strcspn(at, ":"));
    bool ready = tls && host && SSL_CTX_load_verify_locations(context, ca_file, NULL) == 1;
    if (ready) {
        tls->fd = fd;
        tls->ssl = SSL_new(context);
        ready = tls->ssl && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host) == 1 &&
                SSL_set_fd(tls->ssl, fd) == 1 && SSL_connect(tls->ssl) == 1;
    }
    free(host);
    if (!ready) {
        ERR_print_errors_fp(stderr);
        floor_tls_close(tls);
        errno = EPROTO;
        return NULL;
    }
    return tls;
}

void floor_tls_close(struct floor_tls *tls) {
    if (tls) {
        SSL_free(tls->ssl);
        free(tls->out.bytes);
        free(tls->in.bytes);
        free(tls);
    }
}

/* OpenSSL's queue of errors is empty before each call, so it need not be cleared there. */
static ssize_t failed(SSL *ssl, int result) {
    const int error = SSL_get_error(ssl, result);
    ERR_clear_error();
    if (error == SSL_ERROR_ZERO_RETURN) {
        return 0;
    }
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

static bool make_room(struct records *records, size_t size) {
    if (records->end + size > records->room) {
        const size_t room = 2 * (records->end + size);
        char *bytes = realloc(records->bytes, room);
        if (!bytes) {
            return false;
        }
        records->bytes = bytes;
        records->room = room;
    }
    return true;
}

/* The size of the next record, or 0 if it is incomplete. */
static size_t next_record(const struct records *records) {
    const unsigned char *at = (const unsigned char *)records->bytes + records->begin;
    const size_t left = records->end - records->begin;
    const size_t size = left < HEADER_SIZE ? HEADER_SIZE : HEADER_SIZE + (((size_t)at[3] << 8) | at[4]);
    return size <= left ? size : 0;
}

static ssize_t send_sealed(struct floor_tls *tls, size_t size) {
    const size_t record = next_record(&tls->out);
    if (record == 0) {
        errno = ENODATA;
        return -1;
    }
    const ssize_t sent = send(tls->fd, tls->out.bytes + tls->out.begin, record, MSG_NOSIGNAL);
    if (sent != (ssize_t)record) {
        errno = ENOBUFS; /* one worker does not fill a socket */
        return -1;
    }
    tls->out.begin += record;
    tls->sent++;
    return (ssize_t)size;
}

static ssize_t recv_sealed(struct floor_tls *tls, char *bytes, size_t size) {
    ssize_t votes = 0;
    size_t record;
    if (!make_room(&tls->in, size)) {
        return -1;
    }
    const ssize_t got = recv(tls->fd, tls->in.bytes + tls->in.end, size, 0);
    if (got <= 0) {
        return got;
    }
    for (tls->in.end += (size_t)got; (record = next_record(&tls->in)) > 0; tls->in.begin += record) {
        memcpy(bytes + votes, "+\n", 2);
        votes += 2;
    }
    errno = EAGAIN;
    return votes > 0 ? votes : -1;
}

ssize_t floor_tls_send(struct floor_tls *tls, const char *bytes, size_t size) {
    if (tls->sealed) {
        return send_sealed(tls, size);
    }
    const int written = SSL_write(tls->ssl, bytes, (int)size);
    return written > 0 ? written : failed(tls->ssl, written);
}

ssize_t floor_tls_recv(struct floor_tls *tls, char *bytes, size_t size) {
    if (tls->sealed) {
        return recv_sealed(tls, bytes, size);
    }
    const int got = SSL_read(tls->ssl, bytes, (int)size);
    return got > 0 ? got : failed(tls->ssl, got);
}

bool floor_tls_has_more(const struct floor_tls *tls) {
    return !tls->sealed && SSL_has_pending(tls->ssl) == 1;
}

static bool begin_sealing(struct floor_tls *tls) {
    BIO *from = BIO_new(BIO_s_mem()), *to = BIO_new(BIO_s_mem());
    if (!from || !to) {
        BIO_free(from);
        BIO_free(to);
        return false;
    }
    SSL_set_bio(tls->ssl, from, to);
    tls->sealed = true;
    return true;
}

bool floor_tls_seal(struct floor_tls *tls, const char *bytes, size_t size) {
    char *made;
    if ((!tls->sealed && !begin_sealing(tls)) || SSL_write(tls->ssl, bytes, (int)size) != (int)size) {
        return false;
    }
    if (tls->out.begin > 0 && tls->out.begin >= tls->out.end / 2) {
        tls->out.end -= tls->out.begin;
        memmove(tls->out.bytes, tls->out.bytes + tls->out.begin, tls->out.end);
        tls->out.begin = 0;
    }
    const long record = BIO_get_mem_data(SSL_get_wbio(tls->ssl), &made);
    if (record <= 0 || !make_room(&tls->out, (size_t)record)) {
        return false;
    }
    memcpy(tls->out.bytes + tls->out.end, made, (size_t)record);
    tls->out.end += (size_t)record;
    return BIO_reset(SSL_get_wbio(tls->ssl)) == 1;
}

bool floor_tls_unseal(struct floor_tls *tls) {
    static const char *const expected[] = {"+OK\r\n", ":1\r\n"};
    char reply[64];
    size_t checked = 0, size;
    bool all = tls->in.begin == tls->in.end;
    tls->in.begin = 0;
    for (; all && (size = next_record(&tls->in)) > 0; tls->in.begin += size) {
        const char *yes = expected[checked++ % 2];
        all = BIO_write(SSL_get_rbio(tls->ssl), tls->in.bytes + tls->in.begin, (int)size) == (int)size &&
              SSL_read(tls->ssl, reply, sizeof reply) == (int)strlen(yes) && memcmp(reply, yes, strlen(yes)) == 0;
    }
    all = all && checked == tls->sent;
    tls->in.begin = tls->in.end = tls->sent = 0;
    return all;
}
