/* One way of a connection: bytes in order, when each piece may leave, and one fault in them at an
 * exact byte. No I/O, no clock. */
#ifndef PROXY_PIPE_H
#define PROXY_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROXY_PIPE_MAX      ((size_t)1 << 20) /* bytes that wait, with their overhead */
#define PROXY_PIPE_NEVER_US INT64_MAX

enum proxy_way { PROXY_REQUESTS = 0, PROXY_REPLIES = 1 }; /* client to node, node to client */

/* What a link does to one way. Zeroed, it forwards at once. README.md lists the keys. */
struct proxy_rule {
    int64_t hold;
    int64_t delay_us;
    int64_t jitter_us;
    int64_t bytes_per_s; /* 0: no limit */
    int64_t trickle;
    int64_t refuse;
    int64_t cut; /* 1, 2: end each connection after cut_after bytes, by FIN or RST to the client */
    int64_t cut_after;
};

/* One way of a link: its rule and its bookings. All connections of the link share it. */
struct proxy_lane {
    struct proxy_rule rule;
    int64_t free_us;  /* when it will have sent all booked bytes */
    uint64_t version; /* of the rule: a booking under an earlier one is void */
    uint64_t random;  /* the generator's state */
};

/* What follows the last byte: FIN; RST to both sides; or a cut, with FIN or RST to the client and
 * FIN to the node. */
enum proxy_end { PROXY_END_NONE, PROXY_END_FIN, PROXY_END_RESET, PROXY_END_CUT_FIN, PROXY_END_CUT_RESET };

struct proxy_piece;

/* One way of one connection. Zeroed except for the lane, it is empty. */
struct proxy_pipe {
    struct proxy_lane *lane;
    bool frozen; /* held, whatever the rule says */
    struct proxy_piece *first, *last;
    size_t used; /* of PROXY_PIPE_MAX */
    enum proxy_end end;
    int64_t end_came_us;
    uint32_t end_luck;
    /* The next `booked` bytes are booked on the lane. They will have been sent at booked_us. */
    size_t booked;
    int64_t booked_us;
    uint64_t booked_version;
};

/*
 * Times follow from the rule at the moment of the question, not at arrival. So the end of a delay
 * releases the bytes that wait for it. Bytes never overtake each other: only the first piece
 * counts.
 */

/* Sets a new rule from now on. */
void proxy_lane_set(struct proxy_lane *lane, const struct proxy_rule *rule, int64_t now_us);

/* Keeps a copy. Returns false without memory. A full pipe still accepts bytes, so ask before
 * reading. */
bool proxy_pipe_put(struct proxy_pipe *pipe, const char *bytes, size_t size, int64_t now_us);
bool proxy_pipe_is_full(const struct proxy_pipe *pipe);
bool proxy_pipe_is_empty(const struct proxy_pipe *pipe);
/* Returns whether new bytes may leave at once: nothing waits, and no rule applies. */
bool proxy_pipe_is_clear(const struct proxy_pipe *pipe);
/* No more bytes come. An end replaces an earlier one if it is later in the enum. */
void proxy_pipe_ends(struct proxy_pipe *pipe, enum proxy_end end, int64_t now_us);
/* Drops the bytes and the end. */
void proxy_pipe_clear(struct proxy_pipe *pipe);

/* How many bytes may leave now, in one piece; 0 for none. On a lane with limited bandwidth, books
 * them. */
size_t proxy_pipe_due(struct proxy_pipe *pipe, int64_t now_us, const char **bytes);
/* `size` of those bytes have left. */
void proxy_pipe_left(struct proxy_pipe *pipe, size_t size);
/* The end, if all bytes have left and it may follow now. */
enum proxy_end proxy_pipe_due_end(const struct proxy_pipe *pipe, int64_t now_us);
/* When to look again if nothing is due now. PROXY_PIPE_NEVER_US if the pipe is empty or held. */
int64_t proxy_pipe_next_us(const struct proxy_pipe *pipe);

/* One fault in a stream of bytes, once, at an exact byte. */

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
