/* Fencing tokens: rising numbers, made of the wall clock, the counters that were seen, and the
 * client's low digits. */
#include "core/fence.h"

#include <assert.h>

#include "core/number.h"
#include "core/planted.h"

/*
 * 2200-01-01. A clock after this, or before 1970, is wrong and counts as 0: the number then follows
 * the counters of the nodes. A wrong clock would use the numbers up, because counters never fall.
 */
#define WALL_MAX_US INT64_C(7258118400000000)

/* For planted bugs: all proposals of the same 100 ms are one number. */
#define IS_COARSE (REDLOCK_PLANTED(FENCE_COLLIDES) || REDLOCK_PLANTED(FENCE_ACCEPTS_EQUAL))
#define COARSE_US 100000

/* Readers of the same window propose the same number. It is no further ahead of the clock than
 * writers follow: redlock_fence_ahead_us(). */
#define READER_WINDOW_US 10000
_Static_assert(READER_WINDOW_US <= REDLOCK_FENCE_AHEAD_MAX_US, "a writer who comes next follows");

static uint64_t low_digits(const struct redlock_fence *fence) {
    assert(fence->client < REDLOCK_FENCE_CLIENTS);
    return IS_COARSE ? 0 : fence->client;
}

static uint64_t plausible_us(int64_t wall_us) {
    return wall_us > 0 && wall_us <= WALL_MAX_US ? (uint64_t)wall_us : 0;
}

static uint64_t of_the_clock(const struct redlock_fence *fence, int64_t wall_us) {
    const uint64_t us = plausible_us(wall_us);
    return (IS_COARSE ? us - us % COARSE_US : us) * REDLOCK_FENCE_CLIENTS + low_digits(fence);
}

static uint64_t highest(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The next number above `floor` with the client's low digits. */
static uint64_t above(const struct redlock_fence *fence, uint64_t floor) {
    assert(floor < REDLOCK_FENCE_MAX);
    const uint64_t number = floor - floor % REDLOCK_FENCE_CLIENTS + low_digits(fence);
    return number > floor ? number : number + REDLOCK_FENCE_CLIENTS;
}

/* The next number of those who read: they have it together. With the clock, it is above all that a
 * right clock has made by now, also where counters were lost. */
static uint64_t for_reader(uint64_t floor, int64_t wall_us) {
    const uint64_t us = plausible_us(wall_us), window = us - us % READER_WINDOW_US + READER_WINDOW_US - 1;
    const uint64_t next = floor - floor % REDLOCK_FENCE_CLIENTS + REDLOCK_FENCE_READER;
    return highest(next, us == 0 ? 0 : window * REDLOCK_FENCE_CLIENTS + REDLOCK_FENCE_READER);
}

static bool set_token(struct redlock_fence *fence, uint64_t floor, int64_t wall_us) {
    assert(floor >= fence->seen);
    if (floor >= REDLOCK_FENCE_MAX) {
        return false;
    }
    const uint64_t token =
        fence->reads ? for_reader(floor, wall_us) : highest(above(fence, floor), of_the_clock(fence, wall_us));
    if (token > REDLOCK_FENCE_MAX) {
        return false;
    }
    fence->token = token;
    fence->accepted = fence->far = 0;
    return true;
}

bool redlock_fence_is_far(uint64_t counter, int64_t wall_us) {
    return counter / REDLOCK_FENCE_CLIENTS > plausible_us(wall_us) + REDLOCK_FENCE_BELIEVED_US;
}

bool redlock_fence_propose(struct redlock_fence *fence, int64_t wall_us) {
    /* A node that lied accepts a token that followed its lie. */
    const bool counts = fence->accepted != 0 && !redlock_fence_is_far(fence->token, wall_us);
    return set_token(fence, counts ? highest(fence->token, fence->seen) : fence->seen, wall_us);
}

bool redlock_fence_raise(struct redlock_fence *fence, int64_t wall_us, bool follow) {
    assert(fence->far == 0 || fence->far_least != 0);
    const uint64_t floor = highest(fence->token, fence->seen);
    return set_token(fence, follow && fence->far != 0 ? highest(floor, fence->far_least) : floor, wall_us);
}

int64_t redlock_fence_ahead_us(int64_t ahead_us, uint64_t counter, int64_t wall_us) {
    assert(ahead_us >= 0 && ahead_us <= REDLOCK_FENCE_AHEAD_MAX_US);
    const uint64_t counter_us = counter / REDLOCK_FENCE_CLIENTS;
    if (wall_us < 0 || counter_us <= (uint64_t)wall_us || counter_us - (uint64_t)wall_us > REDLOCK_FENCE_AHEAD_MAX_US) {
        return ahead_us;
    }
    const int64_t by_us = (int64_t)(counter_us - (uint64_t)wall_us);
    return by_us > ahead_us ? by_us : ahead_us;
}

void redlock_fence_note(struct redlock_fence *fence, unsigned node, bool accepted, uint64_t counter, int64_t wall_us) {
    assert(node < REDLOCK_NODES_MAX);
    if (accepted) {
        fence->accepted |= REDLOCK_NODE(node);
        return;
    }
    if (counter >= fence->token) {
        fence->not_below |= REDLOCK_NODE(node);
    }
    if (!redlock_fence_is_far(counter, wall_us)) {
        fence->seen = highest(fence->seen, counter);
        return;
    }
    fence->far_least = fence->far == 0 || counter < fence->far_least ? counter : fence->far_least;
    fence->far |= REDLOCK_NODE(node);
}

void redlock_fence_told(struct redlock_fence *fence, unsigned node, uint64_t counter, int64_t wall_us) {
    assert(node < REDLOCK_NODES_MAX && fence->reads);
    if (counter == 0) {
        return;
    }
    const bool is_ours = counter % REDLOCK_FENCE_CLIENTS == REDLOCK_FENCE_READER;
    if (!is_ours || redlock_fence_is_far(counter, wall_us)) {
        redlock_fence_note(fence, node, false, counter, wall_us);
    } else if (fence->accepted == 0 || counter > fence->token) {
        fence->token = counter;
        fence->accepted = REDLOCK_NODE(node);
    } else if (counter == fence->token) {
        fence->accepted |= REDLOCK_NODE(node);
    }
}

bool redlock_fence_is_won(const struct redlock_fence *fence, redlock_nodes granted, unsigned quorum) {
    assert(quorum > 0);
    return redlock_nodes_count(fence->accepted & granted) >= quorum;
}

void redlock_fence_format(uint64_t number, char digits[REDLOCK_FENCE_DIGITS]) {
    (void)redlock_number_write(digits, number, REDLOCK_FENCE_DIGITS);
}

bool redlock_fence_parse(const char *digits, size_t size, uint64_t *number) {
    uint64_t value;
    if (size != REDLOCK_FENCE_DIGITS || !redlock_number_read(digits, size, REDLOCK_FENCE_MAX, &value)) {
        return false;
    }
    *number = value;
    return true;
}
