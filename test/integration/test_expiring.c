/* on_expiring against real servers that hang: it comes before the end, ends nothing, and comes
 * again when the next deadline is near. */
#include "world.h"

#define TTL_MS      6000
#define EXPIRING_MS 3000

struct warned {
    int runs, lost;
    int64_t remaining_ms, validity_ms;
    redlock_lease *lease;
};

static void warn(redlock_lease *lease, int64_t remaining_ms, void *data) {
    struct warned *warned = data;
    warned->runs++;
    warned->lease = lease;
    warned->remaining_ms = remaining_ms;
    warned->validity_ms = redlock_lease_validity_ms(lease);
}

static void lose(redlock_lease *lease, const char *reason, void *data) {
    (void)lease, (void)reason;
    ((struct warned *)data)->lost++;
}

static redlock_lease *acquire(redlock_manager *manager, bool auto_extend, struct warned *warned) {
    struct outcome *outcome = world_outcome();
    redlock_acquire_options options = world_acquire_options(TTL_MS, 0);
    options.auto_extend = auto_extend;
    options.expiring_ms = EXPIRING_MS;
    options.on_expiring = warn;
    options.expiring_data = warned;
    options.on_lost = lose;
    options.lost_data = warned;
    if (drive_acquire(world_loop, manager, "r", &options, outcome) != REDLOCK_OK) {
        fail_msg("%s", outcome->message);
    }
    return outcome->lease;
}

static void hang(bool hangs) {
    for (size_t i = 0; i < world_servers.count; i++) {
        (hangs ? server_pause : server_resume)(&world_servers.at[i]);
    }
}

static bool is_warned(void *data) {
    return ((struct warned *)data)->runs > 0;
}

static bool is_over(void *data) {
    return ((struct warned *)data)->lost > 0;
}

static bool is_renewed(void *data) {
    return redlock_lease_validity_ms(((struct warned *)data)->lease) > EXPIRING_MS;
}

static void assert_in_time(const struct warned *warned, const redlock_lease *lease) {
    assert_int_equal(warned->runs, 1);
    assert_int_equal(warned->lost, 0);
    assert_ptr_equal(warned->lease, lease);
    assert_in_range(warned->remaining_ms, 1, EXPIRING_MS);
    assert_true(warned->validity_ms <= warned->remaining_ms);
}

TESTS_WITH(world_three, world_end);

WORLD_TEST(a_holder_that_is_cut_off_is_told_before_its_end) {
    static struct warned warned;
    redlock_manager *manager = world_manager_all(BRISK_MS);
    redlock_lease *lease = acquire(manager, true, &warned);
    hang(true);
    assert_true(drive_until(world_loop, is_warned, &warned, DRIVE_TIMEOUT_MS));
    assert_in_time(&warned, lease);
    assert_true(drive_until(world_loop, is_over, &warned, DRIVE_TIMEOUT_MS));
    hang(false);
    assert_int_equal(warned.runs, 1);
    assert_int_equal(world_statistics(manager).expiring, 1);
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_ERR_LOST);
}

/* The nodes come back before the deadline, and the lease goes on; then they hang again. */
WORLD_TEST(each_deadline_that_comes_near_is_told) {
    static struct warned warned;
    redlock_manager *manager = world_manager_all(BRISK_MS);
    redlock_lease *lease = acquire(manager, true, &warned);
    for (int i = 0; i < 2; i++) {
        warned = (struct warned){0};
        hang(true);
        assert_true(drive_until(world_loop, is_warned, &warned, DRIVE_TIMEOUT_MS));
        assert_in_time(&warned, lease);
        hang(false);
        assert_true(drive_until(world_loop, is_renewed, &warned, DRIVE_TIMEOUT_MS));
        assert_int_equal(warned.runs, 1);
    }
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

MANAGER_TEST(who_renews_by_hand_is_told_when_it_is_time) {
    static struct warned warned;
    redlock_lease *lease = acquire(manager, false, &warned);
    assert_true(drive_until(world_loop, is_warned, &warned, DRIVE_TIMEOUT_MS));
    assert_in_time(&warned, lease);
    assert_is(drive_extend(world_loop, lease, 60000, world_outcome()), REDLOCK_OK);
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
    assert_int_equal(warned.runs, 1);
    assert_int_equal(warned.lost, 0);
}
