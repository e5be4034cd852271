/* The planted bugs of fencing tokens and quarantines: each does what its name says, and does
 * nothing while it is off. */

#include "core/fence.h"
#include "core/guard.h"
#include "core/planted.h"
#include "core/time.h"
#include "test.h"

#define WALL_US INT64_C(1795167037123456)
#define S       (1000 * REDLOCK_NS_PER_MS)

#define TTL_MAX_MS 30000

enum redlock_planted_bug redlock_planted_bug = REDLOCK_BUG_NONE;

static int heal(UNUSED void **state) {
    redlock_planted_bug = REDLOCK_BUG_NONE;
    return 0;
}

static uint64_t proposed(uint16_t client, int64_t wall_us) {
    struct redlock_fence fence = {.client = client};
    assert_true(redlock_fence_propose(&fence, wall_us));
    return fence.token;
}

#define FRESH_TEST(name) TEST_WITH(name, NULL, heal)

FRESH_TEST(proposals_collide) {
    static const enum redlock_planted_bug bugs[] = {REDLOCK_BUG_FENCE_COLLIDES, REDLOCK_BUG_FENCE_ACCEPTS_EQUAL};
    assert_true(proposed(1, WALL_US) != proposed(2, WALL_US));
    assert_true(proposed(1, WALL_US) != proposed(1, WALL_US + 1));
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        redlock_planted_bug = bugs[i];
        assert_int_equal(proposed(1, WALL_US), UINT64_C(1795167037100000000));
        assert_int_equal(proposed(2, WALL_US + 70000), UINT64_C(1795167037100000000));
        assert_int_equal(proposed(2, WALL_US + 80000), UINT64_C(1795167037200000000));
        struct redlock_fence fence = {.client = 7, .seen = UINT64_C(1795167037100000000)};
        assert_true(redlock_fence_propose(&fence, WALL_US)); /* still above what was seen */
        assert_int_equal(fence.token, UINT64_C(1795167037100001000));
    }
}

/* Whether the node may vote at that time after a restart. Its second run greeted at 100 s and said
 * an uptime of up_s. */
static bool is_free(int64_t up_s, int64_t ahead_ns, int64_t again_s, int64_t now_s) {
    struct redlock_guard guard;
    bool jumped;
    redlock_guard_init(&guard, &(struct redlock_guard_plan){.restart = REDLOCK_RESTART_GUARD_OBSERVED,
                                                            .ttl_max_ms = TTL_MAX_MS,
                                                            .node_count = 1,
                                                            .quorum = redlock_quorum(1)});
    struct redlock_greeting greeting = {.run_id = "a", .uptime_s = 1000};
    redlock_guard_greet(&guard, 0, &greeting, S, &jumped);
    greeting = (struct redlock_greeting){.run_id = "b", .uptime_s = up_s};
    greeting.clock = (struct redlock_clock_sample){100 * S, 100 * S, (WALL_US * 1000 + ahead_ns) / 1000};
    redlock_guard_greet(&guard, 0, &greeting, 100 * S, &jumped);
    if (again_s != 0) {
        greeting.uptime_s += again_s - 100;
        greeting.clock.sent_ns = greeting.clock.read_ns = again_s * S;
        redlock_guard_greet(&guard, 0, &greeting, again_s * S, &jumped);
    }
    return redlock_guard_may_not_vote(&guard, now_s * S) == 0;
}

FRESH_TEST(quarantine_is_short) {
    assert_false(is_free(1, 0, 0, 130));
    assert_true(is_free(1, 0, 0, 131));
    redlock_planted_bug = REDLOCK_BUG_QUARANTINE_SHORT;
    assert_false(is_free(1, 0, 0, 107));
    assert_true(is_free(1, 0, 0, 108));
}

FRESH_TEST(quarantine_ends_by_uptime) {
    assert_false(is_free(121, 120 * S, 0, 130));
    assert_false(is_free(INT64_MAX, 0, 0, 130));
    redlock_planted_bug = REDLOCK_BUG_QUARANTINE_BY_UPTIME;
    assert_true(is_free(121, 120 * S, 0, 100)); /* its clock was set forward by two minutes */
    assert_true(is_free(INT64_MAX, 0, 0, 100));
    assert_false(is_free(1, 0, 0, 128));
    assert_true(is_free(1, 0, 0, 129));
    assert_false(is_free(INT64_MIN, 0, 0, 129));
    assert_false(is_free(10, 0, 110, 119)); /* what it said last counts */
    assert_true(is_free(10, 0, 110, 120));
    assert_true(is_free(20, 0, 110, 110));
}
