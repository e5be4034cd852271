/* TLS of the floor: OpenSSL straight on the sockets. */
#ifndef BENCH_FLOOR_TLS_H
#define BENCH_FLOOR_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct floor_tls; /* one connection */
struct ssl_ctx_st;

/* Ends the program if there is no TLS. */
struct ssl_ctx_st *floor_tls_begin(void);
void floor_tls_end(struct ssl_ctx_st *context);

/* Shakes hands with the node at HOST:PORT, for which an authority in the file vouches, on a socket
 * that blocks. Returns NULL and sets errno on failure. */
struct floor_tls *floor_tls_open(struct ssl_ctx_st *context, const char *ca_file, int fd, const char *at);
void floor_tls_close(struct floor_tls *tls);

/* Like send() and recv(). */
ssize_t floor_tls_send(struct floor_tls *tls, const char *bytes, size_t size);
ssize_t floor_tls_recv(struct floor_tls *tls, char *bytes, size_t size);

/* Returns whether bytes were read from the socket that floor_tls_recv() did not return yet. */
bool floor_tls_has_more(const struct floor_tls *tls);

/* Encrypts a request, to be sent later. From then on, each floor_tls_send() sends one of these
 * requests in their order, whatever its bytes, and floor_tls_recv() takes each record for one
 * granted vote. */
bool floor_tls_seal(struct floor_tls *tls, const char *bytes, size_t size);

/* Decrypts the replies. Returns false unless there is one for each request that was sent, and they
 * are +OK and :1 in turn. */
bool floor_tls_unseal(struct floor_tls *tls);

#endif
