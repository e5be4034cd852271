/* Observers that begin together do not ask together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/leader.h"
#include "core/validity.h"

#define MS    REDLOCK_NS_PER_MS
#define ALICE "00000000000000aa0123456789abcdef0123456789abcdef"

/* After how long the only node is asked again if it says this, for many observers. */
static void ask_many(const char *token, int64_t ttl_ms, int64_t *least_ms, int64_t *most_ms) {
    const struct redlock_leader_word word = {.token = token, .token_size = strlen(token), .ttl_ms = ttl_ms};
    *least_ms = INT64_MAX;
    *most_ms = 0;
    for (uint32_t seed = 0; seed < 5000; seed++) {
        struct redlock_leader_node node = {0};
        struct redlock_leadership observer = {.node_count = 1, .quorum = 1, .nodes = &node};
        redlock_leadership_init(&observer, seed, 0);
        assert_int_equal(redlock_leadership_ask(&observer, 0), 1);
        redlock_leadership_answer(&observer, 0, &word, 0);
        const int64_t next_ms = redlock_leadership_next_ns(&observer) / MS;
        *least_ms = next_ms < *least_ms ? next_ms : *least_ms;
        *most_ms = next_ms > *most_ms ? next_ms : *most_ms;
    }
}

static void within_ten_ms_after_the_end_of_a_key(void **state) {
    int64_t least_ms, most_ms;
    (void)state;
    ask_many(ALICE, 100, &least_ms, &most_ms);
    assert_int_equal(least_ms, 102);
    assert_int_equal(most_ms, 111);
}

static void within_a_tenth_of_the_time_between_two_looks(void **state) {
    int64_t least_ms, most_ms;
    (void)state;
    ask_many("", -2, &least_ms, &most_ms);
    assert_in_range(least_ms, 2251, 2255);
    assert_in_range(most_ms, 2496, 2500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_ten_ms_after_the_end_of_a_key),
        cmocka_unit_test(within_a_tenth_of_the_time_between_two_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
