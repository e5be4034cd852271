/* The search itself, on a model whose states can be counted by hand: interchangeable counters that
 * rise one at a time. */
#include "search.h"

#include "bits.h"
#include "test.h"

enum { COUNTERS = 4, TOP = 9, COUNTER_BITS = 40 };

/* Wide fields, so that keys have several words, and fields that span two words. */
struct heap {
    bool alike;         /* states that differ only in the order of the counters are one */
    unsigned forbidden; /* sum of the counters; 0: none */
};

static void initial(const void *config, void *state) {
    (void)config;
    memset(state, 0, COUNTERS * sizeof(unsigned));
}

static unsigned key_words(const void *config) {
    (void)config;
    return (COUNTERS * COUNTER_BITS + 63) / 64;
}

static void pack(const void *config, const void *state, uint64_t *key) {
    const struct heap *heap = config;
    uint64_t columns[COUNTERS];
    struct bits bits = {.words = key};
    for (unsigned i = 0; i < COUNTERS; i++) {
        columns[i] = (uint64_t)((const unsigned *)state)[i] << 35 | 1;
    }
    if (heap->alike) {
        bits_sort(columns, COUNTERS);
    }
    for (unsigned i = 0; i < COUNTERS; i++) {
        bits_put(&bits, columns[i], COUNTER_BITS);
    }
}

static void unpack(const void *config, const uint64_t *key, void *state) {
    (void)config;
    uint64_t words[MODEL_KEY_WORDS_MAX];
    memcpy(words, key, key_words(config) * sizeof(*words));
    struct bits bits = {.words = words};
    for (unsigned i = 0; i < COUNTERS; i++) {
        ((unsigned *)state)[i] = (unsigned)(bits_get(&bits, COUNTER_BITS) >> 35);
    }
}

static void steps(const void *config, const void *state, struct search *search) {
    (void)config;
    for (unsigned i = 0; i < COUNTERS; i++) {
        unsigned next[COUNTERS];
        memcpy(next, state, sizeof(next));
        if (next[i] < TOP) {
            next[i]++;
            search_goal(search, 0);
            search_step(search, next, "counter %u rises to %u", i, next[i]);
        }
    }
}

static const char *violation(const void *config, const void *state) {
    const struct heap *heap = config;
    unsigned sum = 0;
    for (unsigned i = 0; i < COUNTERS; i++) {
        sum += ((const unsigned *)state)[i];
    }
    return heap->forbidden && sum == heap->forbidden ? "the forbidden sum" : NULL;
}

static const char *const goals[] = {"a rise", NULL};

static unsigned expected(const void *config) {
    (void)config;
    return 1;
}

static const struct model model = {
    .state_bytes = COUNTERS * sizeof(unsigned),
    .key_words = key_words,
    .initial = initial,
    .pack = pack,
    .unpack = unpack,
    .steps = steps,
    .violation = violation,
    .goals = goals,
    .expected = expected,
};

/* 10 values of each of 4 counters; from each state one step for each counter that is not at its
 * top. */
TEST(every_state_is_found_once) {
    const struct heap heap = {.alike = false};
    struct search_result result;
    search_run(&model, &heap, UINT32_MAX, &result);
    assert_true(result.exhausted);
    assert_null(result.violation);
    assert_int_equal(result.states, 10000);
    assert_int_equal(result.transitions, 4 * 9 * 1000);
    assert_int_equal(result.depth, COUNTERS * TOP);
    assert_int_equal(result.goals[0], result.transitions);
}

/* Multisets of 4 out of 10 values: 13 over 4. */
TEST(alike_things_are_counted_once) {
    const struct heap heap = {.alike = true};
    struct search_result result;
    search_run(&model, &heap, UINT32_MAX, &result);
    assert_true(result.exhausted);
    assert_int_equal(result.states, 715);
    assert_int_equal(result.depth, COUNTERS * TOP);
}

/* A sum of 17 is 17 steps away, and no state after it is searched. */
TEST(the_shortest_way_to_a_violation_is_found) {
    for (unsigned alike = 0; alike < 2; alike++) {
        const struct heap heap = {.alike = alike != 0, .forbidden = 17};
        struct search_result result;
        search_run(&model, &heap, UINT32_MAX, &result);
        assert_false(result.exhausted);
        assert_string_equal(result.violation, "the forbidden sum");
        assert_int_equal(result.depth, 17);
        assert_true(result.states < (alike ? 715 : 10000));
    }
}

TEST(a_bound_ends_the_search) {
    const struct heap heap = {.alike = false};
    struct search_result result;
    search_run(&model, &heap, 9999, &result);
    assert_false(result.exhausted);
    assert_int_equal(result.states, 9999);
    assert_null(result.violation);
}
