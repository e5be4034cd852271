/* Bytes on their way through the link proxy: what came, in order, and when each piece of it may leave. Pure: no I/O, no clock. */
#ifndef CHAOS_PROXY_PIPE_H
#define CHAOS_PROXY_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAOS_PIPE_MAX      ((size_t)1 << 20) /* bytes that wait, with what it costs to keep them */
#define CHAOS_PIPE_NEVER_US INT64_MAX

/* One way of a link: its rule, and how far it is booked. All connections of the link share it. */
struct chaos_lane {
    bool hold;
    int64_t delay_us;
    int64_t jitter_us;
    int64_t bytes_per_s; /* 0: no limit */
    int64_t free_us;     /* when it will have carried all that is booked */
    uint64_t rule;       /* counts the rules: what was booked under an earlier one is void */
    uint64_t random;     /* the state of its generator */
};

/* What follows the last byte. */
enum chaos_pipe_end { CHAOS_END_NONE, CHAOS_END_FIN, CHAOS_END_RESET };

struct chaos_piece;

/* One way of one connection. Zeroed, but for the lane, it is empty. */
struct chaos_pipe {
    struct chaos_lane *lane;
    struct chaos_piece *first, *last;
    size_t used; /* of CHAOS_PIPE_MAX */
    enum chaos_pipe_end end;
    int64_t end_came_us;
    uint32_t end_luck;
    /* So many bytes are booked on the lane, and have been carried at booked_us. */
    size_t booked;
    int64_t booked_us;
    uint64_t booked_rule;
};

/*
 * Times come from the rule as it is when they are asked for, not as it was when the bytes came: a delay that ends lets go what waits for it. Bytes never
 * overtake each other, for only the first piece is ever looked at.
 */

/* A new rule, from now on. */
void chaos_lane_set(struct chaos_lane *lane, bool hold, int64_t delay_us, int64_t jitter_us, int64_t bytes_per_s,
                    int64_t now_us);
/* Whether bytes pass at once. */
bool chaos_lane_is_clear(const struct chaos_lane *lane);

/* Keeps a copy. False without memory. It takes them even where it is full: the caller asks before it reads. */
bool chaos_pipe_put(struct chaos_pipe *pipe, const char *bytes, size_t size, int64_t now_us);
bool chaos_pipe_is_full(const struct chaos_pipe *pipe);
bool chaos_pipe_is_empty(const struct chaos_pipe *pipe);
/* Nothing comes any more. A reset overrules a FIN. */
void chaos_pipe_ends(struct chaos_pipe *pipe, enum chaos_pipe_end end, int64_t now_us);
/* Forgets the bytes and the end. */
void chaos_pipe_clear(struct chaos_pipe *pipe);

/* The bytes that may leave now, as far as they lie side by side: their number, 0 for none. Books them on a lane with a limit. */
size_t chaos_pipe_due(struct chaos_pipe *pipe, int64_t now_us, const char **bytes);
/* So many of those have left. */
void chaos_pipe_left(struct chaos_pipe *pipe, size_t size);
/* The end, if all bytes have left and it may follow them now. */
enum chaos_pipe_end chaos_pipe_due_end(const struct chaos_pipe *pipe, int64_t now_us);
/* When to look again, after there was nothing due: CHAOS_PIPE_NEVER_US for an empty pipe, and while it is held. */
int64_t chaos_pipe_next_us(const struct chaos_pipe *pipe);

#endif
