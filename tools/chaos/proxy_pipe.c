/* Bytes on their way through the link proxy: pieces in order, and the rule that says when the first may leave. */
#include "proxy_pipe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A link of limited bandwidth carries that much at a time, or what it carries in a millisecond, if that is more. */
enum { SEGMENT_MIN = 1460, SEGMENTS_PER_S = 1000 };

struct chaos_piece {
    struct chaos_piece *next;
    int64_t came_us;
    uint32_t luck; /* of 2^16: how much of the jitter it gets */
    size_t size, gone;
    char bytes[];
};

void chaos_lane_set(struct chaos_lane *lane, bool hold, int64_t delay_us, int64_t jitter_us, int64_t bytes_per_s,
                    int64_t now_us) {
    assert(delay_us >= 0 && jitter_us >= 0 && bytes_per_s >= 0);
    lane->hold = hold;
    lane->delay_us = delay_us;
    lane->jitter_us = jitter_us;
    lane->bytes_per_s = bytes_per_s;
    /* It has carried nothing of what waited so far. */
    lane->free_us = now_us;
    lane->rule++;
}

bool chaos_lane_is_clear(const struct chaos_lane *lane) {
    return !lane->hold && lane->delay_us == 0 && lane->jitter_us == 0 && lane->bytes_per_s == 0;
}

/* splitmix64, its upper bits. */
static uint32_t draw(struct chaos_lane *lane) {
    uint64_t z = lane->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 48);
}

bool chaos_pipe_put(struct chaos_pipe *pipe, const char *bytes, size_t size, int64_t now_us) {
    struct chaos_piece *piece = malloc(sizeof *piece + size);
    assert(size > 0 && pipe->end == CHAOS_END_NONE);
    if (piece == NULL) {
        return false;
    }
    *piece = (struct chaos_piece){.came_us = now_us, .luck = draw(pipe->lane), .size = size};
    memcpy(piece->bytes, bytes, size);
    if (pipe->last == NULL) {
        pipe->first = piece;
    } else {
        pipe->last->next = piece;
    }
    pipe->last = piece;
    pipe->used += sizeof *piece + size;
    return true;
}

bool chaos_pipe_is_full(const struct chaos_pipe *pipe) {
    return pipe->used >= CHAOS_PIPE_MAX;
}

bool chaos_pipe_is_empty(const struct chaos_pipe *pipe) {
    return pipe->first == NULL;
}

void chaos_pipe_ends(struct chaos_pipe *pipe, enum chaos_pipe_end end, int64_t now_us) {
    if (pipe->end == CHAOS_END_NONE) {
        pipe->end_came_us = now_us;
        pipe->end_luck = draw(pipe->lane);
    }
    if (end > pipe->end) {
        pipe->end = end;
    }
}

static void drop_first(struct chaos_pipe *pipe) {
    struct chaos_piece *piece = pipe->first;
    pipe->first = piece->next;
    if (pipe->first == NULL) {
        pipe->last = NULL;
    }
    pipe->used -= sizeof *piece + piece->size;
    free(piece);
}

void chaos_pipe_clear(struct chaos_pipe *pipe) {
    while (pipe->first != NULL) {
        drop_first(pipe);
    }
    pipe->booked = 0;
    pipe->end = CHAOS_END_NONE;
}

static int64_t ready_us(const struct chaos_lane *lane, int64_t came_us, uint32_t luck) {
    return came_us + lane->delay_us + (lane->jitter_us * (int64_t)luck >> 16);
}

static bool is_booked(const struct chaos_pipe *pipe) {
    return pipe->booked > 0 && pipe->booked_rule == pipe->lane->rule;
}

/* The link carries one booking after the other: each connection has one at a time, so that none starves. */
static void book(struct chaos_pipe *pipe, int64_t from_us) {
    struct chaos_lane *lane = pipe->lane;
    size_t rest = pipe->first->size - pipe->first->gone;
    size_t segment = (size_t)(lane->bytes_per_s / SEGMENTS_PER_S);
    segment = segment < SEGMENT_MIN ? SEGMENT_MIN : segment;
    pipe->booked = rest < segment ? rest : segment;
    int64_t takes_us = ((int64_t)pipe->booked * 1000000 + lane->bytes_per_s - 1) / lane->bytes_per_s;
    lane->free_us = (lane->free_us > from_us ? lane->free_us : from_us) + takes_us;
    pipe->booked_us = lane->free_us;
    pipe->booked_rule = lane->rule;
}

size_t chaos_pipe_due(struct chaos_pipe *pipe, int64_t now_us, const char **bytes) {
    const struct chaos_piece *piece = pipe->first;
    const struct chaos_lane *lane = pipe->lane;
    if (piece == NULL || lane->hold) {
        return 0;
    }
    int64_t from_us = ready_us(lane, piece->came_us, piece->luck);
    if (from_us > now_us) {
        return 0;
    }
    *bytes = piece->bytes + piece->gone;
    if (lane->bytes_per_s == 0) {
        return piece->size - piece->gone;
    }
    if (!is_booked(pipe)) {
        book(pipe, from_us);
    }
    return pipe->booked_us <= now_us ? pipe->booked : 0;
}

void chaos_pipe_left(struct chaos_pipe *pipe, size_t size) {
    struct chaos_piece *piece = pipe->first;
    assert(piece != NULL && size <= piece->size - piece->gone);
    piece->gone += size;
    pipe->booked -= size < pipe->booked ? size : pipe->booked;
    if (piece->gone == piece->size) {
        drop_first(pipe);
    }
}

enum chaos_pipe_end chaos_pipe_due_end(const struct chaos_pipe *pipe, int64_t now_us) {
    bool due =
        pipe->first == NULL && !pipe->lane->hold && ready_us(pipe->lane, pipe->end_came_us, pipe->end_luck) <= now_us;
    return due ? pipe->end : CHAOS_END_NONE;
}

int64_t chaos_pipe_next_us(const struct chaos_pipe *pipe) {
    const struct chaos_lane *lane = pipe->lane;
    const struct chaos_piece *piece = pipe->first;
    if (lane->hold || (piece == NULL && pipe->end == CHAOS_END_NONE)) {
        return CHAOS_PIPE_NEVER_US;
    }
    if (piece == NULL) {
        return ready_us(lane, pipe->end_came_us, pipe->end_luck);
    }
    int64_t from_us = ready_us(lane, piece->came_us, piece->luck);
    return lane->bytes_per_s > 0 && is_booked(pipe) && pipe->booked_us > from_us ? pipe->booked_us : from_us;
}
