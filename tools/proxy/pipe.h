/* One way of a connection: bytes in order, and when each piece may leave. No I/O, no clock. */
#ifndef PROXY_PIPE_H
#define PROXY_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROXY_PIPE_MAX      ((size_t)1 << 20) /* bytes that wait, with what it costs to keep them */
#define PROXY_PIPE_NEVER_US INT64_MAX

enum proxy_way { PROXY_REQUESTS = 0, PROXY_REPLIES = 1 }; /* client to node, node to client */

/* What a link does to one way. Zeroed, it passes bytes at once. README.md has the keys. */
struct proxy_rule {
    int64_t hold;
    int64_t delay_us;
    int64_t jitter_us;
    int64_t bytes_per_s; /* 0: no limit */
    int64_t trickle;
    int64_t refuse;
    int64_t cut; /* 1, 2: each connection ends after cut_after bytes, by FIN or RST to the client */
    int64_t cut_after;
};

/* One way of a link: its rule, and how far it is booked. All connections of the link share it. */
struct proxy_lane {
    struct proxy_rule rule;
    int64_t free_us;  /* when it will have carried all that is booked */
    uint64_t version; /* counts the rules: a booking under an earlier one is void */
    uint64_t random;  /* the state of its generator */
};

/*
 * What follows the last byte: FIN, RST to both sides, or the end of the connection, where the
 * client sees FIN or RST and the node FIN.
 */
enum proxy_end { PROXY_END_NONE, PROXY_END_FIN, PROXY_END_RESET, PROXY_END_CUT_FIN, PROXY_END_CUT_RESET };

struct proxy_piece;

/* One way of one connection. Zeroed, but for the lane, it is empty. */
struct proxy_pipe {
    struct proxy_lane *lane;
    bool frozen; /* held, whatever the rule says */
    struct proxy_piece *first, *last;
    size_t used; /* of PROXY_PIPE_MAX */
    enum proxy_end end;
    int64_t end_came_us;
    uint32_t end_luck;
    /* So many bytes are booked on the lane, and have been carried at booked_us. */
    size_t booked;
    int64_t booked_us;
    uint64_t booked_version;
};

/*
 * A time follows from the rule at the moment of the question, not from the rule at arrival: a delay
 * that ends releases what waits for it. Bytes never overtake each other: only the first piece is
 * ever looked at.
 */

/* A new rule, from now on. */
void proxy_lane_set(struct proxy_lane *lane, const struct proxy_rule *rule, int64_t now_us);

/* Keeps a copy. False without memory. It takes bytes even if it is full: ask before reading. */
bool proxy_pipe_put(struct proxy_pipe *pipe, const char *bytes, size_t size, int64_t now_us);
bool proxy_pipe_is_full(const struct proxy_pipe *pipe);
bool proxy_pipe_is_empty(const struct proxy_pipe *pipe);
/* Whether bytes that come now may leave at once: nothing waits, and no rule applies. */
bool proxy_pipe_is_clear(const struct proxy_pipe *pipe);
/* Nothing comes any more. An end that stands later in the enum replaces an earlier one. */
void proxy_pipe_ends(struct proxy_pipe *pipe, enum proxy_end end, int64_t now_us);
/* Forgets the bytes and the end. */
void proxy_pipe_clear(struct proxy_pipe *pipe);

/* How many bytes may leave now, in one piece; 0 for none. Books them on a lane with a limit. */
size_t proxy_pipe_due(struct proxy_pipe *pipe, int64_t now_us, const char **bytes);
/* So many of those have left. */
void proxy_pipe_left(struct proxy_pipe *pipe, size_t size);
/* The end, if all bytes have left and it may follow them now. */
enum proxy_end proxy_pipe_due_end(const struct proxy_pipe *pipe, int64_t now_us);
/* When to look again after nothing was due; PROXY_PIPE_NEVER_US if the pipe is empty or held. */
int64_t proxy_pipe_next_us(const struct proxy_pipe *pipe);

#endif
