/* The floor without OpenSSL. */
#include "contender.h"
#include "floor_tls.h"

struct ssl_ctx_st *floor_tls_begin(void) {
    contender_fatal("the floor was built without TLS");
}

void floor_tls_end(struct ssl_ctx_st *context) {
    (void)context;
}

struct floor_tls *floor_tls_open(struct ssl_ctx_st *context, const char *ca_file, int fd, const char *at) {
    (void)context, (void)ca_file, (void)fd, (void)at;
    return NULL;
}

void floor_tls_close(struct floor_tls *tls) {
    (void)tls;
}

ssize_t floor_tls_send(struct floor_tls *tls, const char *bytes, size_t size) {
    (void)tls, (void)bytes, (void)size;
    return -1;
}

ssize_t floor_tls_recv(struct floor_tls *tls, char *bytes, size_t size) {
    (void)tls, (void)bytes, (void)size;
    return -1;
}

bool floor_tls_has_more(const struct floor_tls *tls) {
    (void)tls;
    return false;
}

bool floor_tls_seal(struct floor_tls *tls, const char *bytes, size_t size) {
    (void)tls, (void)bytes, (void)size;
    return false;
}

bool floor_tls_unseal(struct floor_tls *tls) {
    (void)tls;
    return false;
}
