/* The proxy's pipe: pieces in order, the rule that says when the first may leave, and what a mishap
 * does to the bytes. */
#include "pipe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "values/values.h"

/* A link of limited bandwidth sends this many bytes at a time, or as many as fit into a
 * millisecond. */
enum { SEGMENT_MIN = 1460, SEGMENTS_PER_S = 1000 };

struct proxy_piece {
    struct proxy_piece *next;
    int64_t came_us;
    uint32_t luck; /* its share of the jitter, of 2^16 */
    size_t size, gone;
    char bytes[];
};

void proxy_lane_set(struct proxy_lane *lane, const struct proxy_rule *rule, int64_t now_us) {
    assert(rule->delay_us >= 0 && rule->jitter_us >= 0 && rule->bytes_per_s >= 0);
    lane->rule = *rule;
    /* The new rule starts with an idle link. */
    lane->free_us = now_us;
    lane->version++;
}

static bool is_held(const struct proxy_pipe *pipe) {
    return pipe->frozen || pipe->lane->rule.hold;
}

bool proxy_pipe_put(struct proxy_pipe *pipe, const char *bytes, size_t size, int64_t now_us) {
    struct proxy_piece *piece = malloc(sizeof *piece + size);
    assert(size > 0 && pipe->end == PROXY_END_NONE);
    if (piece == NULL) {
        return false;
    }
    *piece = (struct proxy_piece){
        .came_us = now_us, .luck = (uint32_t)(tool_random(&pipe->lane->random) >> 48), .size = size};
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

bool proxy_pipe_is_full(const struct proxy_pipe *pipe) {
    return pipe->used >= PROXY_PIPE_MAX;
}

bool proxy_pipe_is_empty(const struct proxy_pipe *pipe) {
    return pipe->first == NULL;
}

bool proxy_pipe_is_clear(const struct proxy_pipe *pipe) {
    const struct proxy_rule *rule = &pipe->lane->rule;
    return pipe->first == NULL && !is_held(pipe) && rule->delay_us == 0 && rule->jitter_us == 0 &&
           rule->bytes_per_s == 0 && !rule->trickle;
}

void proxy_pipe_ends(struct proxy_pipe *pipe, enum proxy_end end, int64_t now_us) {
    if (pipe->end == PROXY_END_NONE) {
        pipe->end_came_us = now_us;
        pipe->end_luck = (uint32_t)(tool_random(&pipe->lane->random) >> 48);
    }
    if (end > pipe->end) {
        pipe->end = end;
    }
}

static void drop_first(struct proxy_pipe *pipe) {
    struct proxy_piece *piece = pipe->first;
    pipe->first = piece->next;
    if (pipe->first == NULL) {
        pipe->last = NULL;
    }
    pipe->used -= sizeof *piece + piece->size;
    free(piece);
}

void proxy_pipe_clear(struct proxy_pipe *pipe) {
    while (pipe->first != NULL) {
        drop_first(pipe);
    }
    pipe->booked = 0;
    pipe->end = PROXY_END_NONE;
}

static int64_t ready_us(const struct proxy_lane *lane, int64_t came_us, uint32_t luck) {
    return came_us + lane->rule.delay_us + (lane->rule.jitter_us * (int64_t)luck >> 16);
}

static bool is_booked(const struct proxy_pipe *pipe) {
    return pipe->booked > 0 && pipe->booked_version == pipe->lane->version;
}

/* Books the link for the next bytes. Bookings go one after another, one for each connection, so
 * each gets its share. */
static void book(struct proxy_pipe *pipe, int64_t from_us) {
    struct proxy_lane *lane = pipe->lane;
    size_t rest = pipe->first->size - pipe->first->gone;
    size_t segment = (size_t)(lane->rule.bytes_per_s / SEGMENTS_PER_S);
    segment = segment < SEGMENT_MIN ? SEGMENT_MIN : segment;
    pipe->booked = rest < segment ? rest : segment;
    int64_t takes_us = ((int64_t)pipe->booked * 1000000 + lane->rule.bytes_per_s - 1) / lane->rule.bytes_per_s;
    lane->free_us = (lane->free_us > from_us ? lane->free_us : from_us) + takes_us;
    pipe->booked_us = lane->free_us;
    pipe->booked_version = lane->version;
}

size_t proxy_pipe_due(struct proxy_pipe *pipe, int64_t now_us, const char **bytes) {
    const struct proxy_piece *piece = pipe->first;
    const struct proxy_lane *lane = pipe->lane;
    if (piece == NULL || is_held(pipe)) {
        return 0;
    }
    int64_t from_us = ready_us(lane, piece->came_us, piece->luck);
    if (from_us > now_us) {
        return 0;
    }
    *bytes = piece->bytes + piece->gone;
    size_t size = piece->size - piece->gone;
    if (lane->rule.bytes_per_s > 0) {
        if (!is_booked(pipe)) {
            book(pipe, from_us);
        }
        size = pipe->booked_us <= now_us ? pipe->booked : 0;
    }
    return lane->rule.trickle && size > 1 ? 1 : size;
}

void proxy_pipe_left(struct proxy_pipe *pipe, size_t size) {
    struct proxy_piece *piece = pipe->first;
    assert(piece != NULL && size <= piece->size - piece->gone);
    piece->gone += size;
    pipe->booked -= size < pipe->booked ? size : pipe->booked;
    if (piece->gone == piece->size) {
        drop_first(pipe);
    }
}

enum proxy_end proxy_pipe_due_end(const struct proxy_pipe *pipe, int64_t now_us) {
    bool due =
        pipe->first == NULL && !is_held(pipe) && ready_us(pipe->lane, pipe->end_came_us, pipe->end_luck) <= now_us;
    return due ? pipe->end : PROXY_END_NONE;
}

int64_t proxy_pipe_next_us(const struct proxy_pipe *pipe) {
    const struct proxy_lane *lane = pipe->lane;
    const struct proxy_piece *piece = pipe->first;
    if (is_held(pipe) || (piece == NULL && pipe->end == PROXY_END_NONE)) {
        return PROXY_PIPE_NEVER_US;
    }
    if (piece == NULL) {
        return ready_us(lane, pipe->end_came_us, pipe->end_luck);
    }
    int64_t from_us = ready_us(lane, piece->came_us, piece->luck);
    return lane->rule.bytes_per_s > 0 && is_booked(pipe) && pipe->booked_us > from_us ? pipe->booked_us : from_us;
}

static size_t lose(struct mishap_marks *marks, char *bytes, size_t size) {
    const size_t lost = marks->swallow < size ? marks->swallow : size;
    marks->swallow -= marks->swallow == SIZE_MAX ? 0 : lost;
    memmove(bytes, bytes + lost, size - lost);
    return size - lost;
}

/* Works only if these bytes and the next one came in one piece. What a node says of itself mostly
 * does. */
static bool alter(const struct mishap *planned, char *bytes, size_t size) {
    char *found = memmem(bytes, size, planned->bytes, planned->size);
    if (!found || (size_t)(found - bytes) + planned->size == size) {
        return false;
    }
    found[planned->size] = (char)(found[planned->size] ^ planned->mask);
    return true;
}

size_t mishap_meet(struct mishap *planned, struct mishap_marks *marks, char *bytes, size_t size) {
    if (marks->cut) {
        return 0;
    }
    size = lose(marks, bytes, size);
    if (planned->kind == MISHAP_NONE || size <= planned->after) {
        planned->after -= planned->kind == MISHAP_NONE ? 0 : size;
        return size;
    }
    const size_t at = planned->after;
    const enum mishap_kind kind = planned->kind;
    planned->kind = MISHAP_NONE;
    switch (kind) {
    case MISHAP_NONE:
        return size;
    case MISHAP_INJECT:
        memmove(bytes + at + planned->size, bytes + at, size - at);
        memcpy(bytes + at, planned->bytes, planned->size);
        return size + planned->size;
    case MISHAP_SWALLOW:
    case MISHAP_MUTE:
        marks->swallow = kind == MISHAP_MUTE ? SIZE_MAX : planned->size;
        return at + lose(marks, bytes + at, size - at);
    case MISHAP_CORRUPT:
        bytes[at] = (char)(bytes[at] ^ planned->mask);
        return size;
    case MISHAP_CUT:
        marks->cut = true;
        marks->reset = planned->reset;
        return at;
    case MISHAP_ALTER:
        planned->kind = alter(planned, bytes, size) ? MISHAP_NONE : MISHAP_ALTER;
        planned->after = 0;
        return size;
    }
    return size;
}
