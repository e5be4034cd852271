/* The group's side of queues: seals of pushes, tickets, who waits here. */
#include "group/line.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/siphash.h"
#include "core/number.h"
#include "core/planted.h"
#include "core/time.h"

#define PLACES_MIN 16
/* A ticket that is off by so much is wrong. */
#define CORRECTION_US 1000000
#define DRIFT_PARTS   5000 /* 200 parts in a million */

bool redlock_line_add(struct redlock_line *line, struct redlock_lease *lease, uint32_t *id) {
    assert(line->free_hint <= line->place_count);
    uint32_t at = line->free_hint;
    while (at < line->place_count && line->places[at]) {
        at++;
    }
    if (at == line->place_count) {
        const uint32_t count = line->place_count ? 2 * line->place_count : PLACES_MIN;
        struct redlock_lease **places = realloc(line->places, count * sizeof(struct redlock_lease *));
        if (!places) {
            return false;
        }
        memset(places + line->place_count, 0, (count - line->place_count) * sizeof(struct redlock_lease *));
        line->places = places;
        line->place_count = count;
    }
    line->places[at] = lease;
    line->free_hint = at + 1;
    *id = at;
    return true;
}

void redlock_line_remove(struct redlock_line *line, uint32_t id) {
    assert(id < line->place_count && line->places[id]);
    line->places[id] = NULL;
    line->free_hint = id < line->free_hint ? id : line->free_hint;
}

struct redlock_lease *redlock_line_get(const struct redlock_line *line, uint32_t id) {
    return id < line->place_count ? line->places[id] : NULL;
}

void redlock_line_clear(struct redlock_line *line) {
    free(line->places);
    line->places = NULL;
    line->place_count = 0;
}

int redlock_line_open(struct redlock_line *line, const struct redlock_env *env) {
    uint64_t drawn[4];
    if (line->channel[0]) {
        return REDLOCK_OK;
    }
    const int code = env->random(env->ctx, drawn, sizeof drawn);
    if (code != REDLOCK_OK) {
        return code;
    }
    (void)snprintf(line->channel, sizeof line->channel, "redlock:%016llx%016llx", (unsigned long long)drawn[0],
                   (unsigned long long)drawn[1]);
    memcpy(line->secret, drawn + 2, sizeof line->secret);
    env->listen(env->ctx, line->channel);
    return REDLOCK_OK;
}

/* How wrong a reading may be by now: half of the time that it took, and what clocks drift since. */
static int64_t error_ns(const struct redlock_clock_sample *sample, int64_t now_ns) {
    return (sample->read_ns - sample->sent_ns) / 2 + (now_ns - sample->read_ns) / DRIFT_PARTS;
}

void redlock_line_note_clock(struct redlock_line *line, unsigned node, const struct redlock_clock_sample *sample) {
    struct redlock_clock_sample *best = &line->samples[node];
    const int64_t now_ns = sample->read_ns;
    if (sample->server_us != 0 &&
        (!(line->clocks & REDLOCK_NODE(node)) || error_ns(sample, now_ns) <= error_ns(best, now_ns))) {
        line->clocks |= REDLOCK_NODE(node);
        *best = *sample;
    }
}

static int64_t ahead_us(const struct redlock_clock_sample *sample) {
    return sample->server_us - (sample->sent_ns / 2 + sample->read_ns / 2) / 1000;
}

uint64_t redlock_line_arrive(struct redlock_line *line, int64_t now_ns) {
    const uint64_t now_us = (uint64_t)(now_ns / 1000);
    line->last_arrival_us = now_us > line->last_arrival_us ? now_us : line->last_arrival_us + 1;
    return line->last_arrival_us;
}

/* A wall clock of this client's own would let a client whose clock is slow always go first. The
 * median is near the time of most nodes, whichever clocks are wrong. */
uint64_t redlock_line_ticket(const struct redlock_line *line, const struct redlock_env *env, uint64_t arrival_us) {
    int64_t ahead[REDLOCK_NODES_MAX];
    unsigned count = 0;
    for (unsigned i = 0; line->clocks >> i != 0; i++) {
        if (line->clocks & REDLOCK_NODE(i)) {
            redlock_number_insert(ahead, count++, ahead_us(&line->samples[i]));
        }
    }
    /* No node tells the time, so they can hardly keep a queue. */
    const bool own = count == 0 || REDLOCK_PLANTED(QUEUE_OWN_CLOCK);
    const int64_t by_us = own ? env->wall_us(env->ctx) - env->now_ns(env->ctx) / 1000 : ahead[count / 2];
    const int64_t ticket = (int64_t)arrival_us + by_us;
    return ticket < 1 ? 1 : ticket > (int64_t)REDLOCK_TICKET_MAX ? REDLOCK_TICKET_MAX : (uint64_t)ticket;
}

bool redlock_line_is_wrong(uint64_t ticket, uint64_t right) {
    return (ticket > right ? ticket - right : right - ticket) >= CORRECTION_US;
}

bool redlock_line_knows_time(const struct redlock_line *line, unsigned quorum) {
    assert(quorum > 0);
    return redlock_nodes_count(line->clocks) >= quorum;
}

static unsigned bucket_of(const struct redlock_target *target) {
    return (unsigned)(redlock_hash(redlock_target_key(target), redlock_target_key_size(target)) % REDLOCK_LINE_BUCKETS);
}

bool redlock_line_is_in_line(const struct redlock_line *line, const struct redlock_target *target) {
    const unsigned bucket = bucket_of(target);
    return line->waiting[bucket] > 0 || line->handed_over[bucket];
}

void redlock_line_note_queued(struct redlock_line *line, const struct redlock_target *target, bool queued) {
    uint32_t *waiting = &line->waiting[bucket_of(target)];
    assert(queued || *waiting > 0);
    *waiting = queued ? *waiting + 1 : *waiting - 1;
}

void redlock_line_note_release(struct redlock_line *line, const struct redlock_target *target, bool handed_over) {
    line->handed_over[bucket_of(target)] = handed_over;
}

/* Puts it into the ring. False if it is there. */
static bool is_new(uint64_t *ring, uint32_t size, uint32_t *next, uint64_t value) {
    for (uint32_t i = 0; i < size; i++) {
        if (ring[i] == value) {
            return false;
        }
    }
    ring[(*next)++ % size] = value;
    return true;
}

bool redlock_line_give(struct redlock_line *line, const struct redlock_push *push) {
    return is_new(line->given, REDLOCK_LINE_GIVEN, &line->given_next, push->seal);
}

bool redlock_line_warns(struct redlock_line *line, const char *reason) {
    return is_new(line->warned, REDLOCK_LINE_REASONS, &line->warned_next, redlock_hash(reason, strlen(reason)));
}

/* What is hashed. It has no padding. */
struct sealed {
    int64_t period;
    uint32_t node, id, round, token_size;
    char token_and_key[REDLOCK_TOKEN_SIZE_MAX + REDLOCK_RESOURCE_SIZE_MAX];
};

#define HEAD_SIZE offsetof(struct sealed, token_and_key)

/* Returns its size. */
static size_t fill(struct sealed *sealed, const struct redlock_push *push, int64_t now_ns) {
    assert(push->token_size <= REDLOCK_TOKEN_SIZE_MAX && push->key_size <= REDLOCK_RESOURCE_SIZE_MAX);
    memset(sealed, 0, HEAD_SIZE);
    sealed->period = now_ns / (REDLOCK_LINE_SEAL_PERIOD_MS * REDLOCK_NS_PER_MS);
    sealed->id = push->id;
    sealed->round = push->round;
    sealed->token_size = (uint32_t)push->token_size;
    memcpy(sealed->token_and_key, push->token, push->token_size);
    memcpy(sealed->token_and_key + push->token_size, push->key, push->key_size);
    return HEAD_SIZE + push->token_size + push->key_size;
}

void redlock_line_seal(const uint64_t secret[2], redlock_nodes nodes, const struct redlock_push *push, int64_t now_ns,
                       uint64_t *seals) {
    struct sealed sealed;
    const size_t size = fill(&sealed, push, now_ns);
    for (; nodes != 0; nodes &= nodes - 1) {
        sealed.node = redlock_nodes_first(nodes);
        seals[sealed.node] = redlock_siphash(secret, &sealed, size);
    }
}

bool redlock_line_seal_fits(const uint64_t secret[2], unsigned node, const struct redlock_push *push, int64_t now_ns) {
    struct sealed sealed;
    const size_t size = fill(&sealed, push, now_ns);
    sealed.node = node;
    if (redlock_siphash(secret, &sealed, size) == push->seal) {
        return true;
    }
    sealed.period--;
    return redlock_siphash(secret, &sealed, size) == push->seal;
}
