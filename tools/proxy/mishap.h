/* One thing that goes wrong with a stream of bytes, once, at an exact byte. */
#ifndef PROXY_MISHAP_H
#define PROXY_MISHAP_H

#include <stdbool.h>
#include <stddef.h>

#define MISHAP_BYTES_MAX 256
#define MISHAP_KINDS     7

enum mishap_kind {
    MISHAP_NONE = 0,
    MISHAP_INJECT,  /* bytes that the source never sent */
    MISHAP_SWALLOW, /* bytes are lost; what follows closes up, and replies meet wrong requests */
    MISHAP_MUTE,    /* all that follows on this connection is lost */
    MISHAP_CORRUPT, /* one byte is another */
    MISHAP_ALTER,   /* the byte behind the next `bytes` that come is another: a number is off */
    MISHAP_CUT      /* what came before is still delivered, then the connection is cut */
};

struct mishap {
    enum mishap_kind kind;
    size_t after;       /* it happens once so many more bytes have come, on whichever connection */
    size_t size;        /* INJECT, ALTER: of bytes, SWALLOW: how many */
    unsigned char mask; /* CORRUPT, ALTER: the bits that change */
    bool reset;         /* CUT: RST, not FIN */
    char bytes[MISHAP_BYTES_MAX];
};

/* What a mishap leaves behind on one way of a connection; {0} where nothing has happened. */
struct mishap_marks {
    size_t swallow; /* bytes that are still to be lost */
    bool cut, reset;
};

/*
 * Takes `size` bytes that have come, with room for MISHAP_BYTES_MAX more behind them; returns how
 * many go on. A mishap that has happened becomes MISHAP_NONE.
 */
size_t mishap_meet(struct mishap *planned, struct mishap_marks *marks, char *bytes, size_t size);

#endif
