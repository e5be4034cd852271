/* One fault in a stream of bytes, once, at an exact byte. */
#ifndef PROXY_MISHAP_H
#define PROXY_MISHAP_H

#include <stdbool.h>
#include <stddef.h>

#define MISHAP_BYTES_MAX 256
#define MISHAP_KINDS     7

enum mishap_kind {
    MISHAP_NONE = 0,
    MISHAP_INJECT,  /* adds bytes that the source never sent */
    MISHAP_SWALLOW, /* drops some bytes, so later replies meet wrong requests */
    MISHAP_MUTE,    /* drops everything that follows on this connection */
    MISHAP_CORRUPT, /* changes one byte */
    MISHAP_ALTER,   /* changes the byte after the next `bytes`: a wrong number */
    MISHAP_CUT      /* delivers what came before, then cuts the connection */
};

struct mishap {
    enum mishap_kind kind;
    size_t after;       /* happens after this many more bytes, on any connection */
    size_t size;        /* INJECT, ALTER: size of `bytes`; SWALLOW: bytes to drop */
    unsigned char mask; /* CORRUPT, ALTER: the bits to flip */
    bool reset;         /* CUT: RST, not FIN */
    char bytes[MISHAP_BYTES_MAX];
};

/* The state that a mishap leaves on one way of a connection; {0} before any. */
struct mishap_marks {
    size_t swallow; /* bytes still to drop */
    bool cut, reset;
};

/*
 * Applies the mishap to `size` bytes that have come. The buffer has room for MISHAP_BYTES_MAX more.
 * Returns how many go on. A mishap that has happened becomes MISHAP_NONE.
 */
size_t mishap_meet(struct mishap *planned, struct mishap_marks *marks, char *bytes, size_t size);

#endif
