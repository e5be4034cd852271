/* Lock delay: the keys of a lease that was lost or left stay for the delay, and keep others out. A
 * release ends them at once. */
#include "world.h"

#define TTL_MS   20000
#define DELAY_MS 60000
#define SHORT_MS 1500

static redlock_acquire_options delay_options(int64_t ttl_ms, int64_t lock_delay_ms, struct loss *loss) {
    redlock_acquire_options options = world_acquire_options(ttl_ms, 0);
    options.lock_delay_ms = lock_delay_ms;
    options.on_lost = loss ? loss_collect : NULL;
    options.lost_data = loss;
    return options;
}

static void assert_others_are_denied(const char *resource) {
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    struct outcome *outcome = world_outcome();
    assert_is(drive_acquire(world_loop, manager, resource, TIMES(TTL_MS, 0), outcome), REDLOCK_ERR_CONTENDED);
    assert_true(outcome_votes(outcome, REDLOCK_VOTE_DENIED) >= 3);
}

/* Every key still has the delay left when the lease ends. */
static void assert_keys_outlive(const char *key, const redlock_lease *lease) {
    assert_true(world_wait_with_key(key, 5, DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < 5; i++) {
        /* It was longer before, so at most this is left. */
        int64_t validity_ms = redlock_lease_validity_ms(lease);
        int64_t pttl_ms = server_pttl_ms(&world_servers.at[i], key);
        assert_true(pttl_ms <= TTL_MS + DELAY_MS);
        assert_true(pttl_ms > DELAY_MS);
        assert_in_range(validity_ms, 1, TTL_MS - TTL_MS / 100 - 2);
    }
}

TESTS_WITH(world_five, world_end);

MANAGER_TEST(the_keys_live_longer_than_the_lease) {
    redlock_acquire_options options = delay_options(TTL_MS, DELAY_MS, NULL);
    redlock_lease *lease = world_acquire_with(manager, "door", &options);
    assert_keys_outlive("door", lease);
    assert_is(drive_extend(world_loop, lease, TTL_MS, outcome), REDLOCK_OK);
    assert_keys_outlive("door", lease);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

/* The holder may still be at work, whether it was told of the loss or has given up its handle. */
MANAGER_TEST(a_lost_lease_keeps_others_away) {
    struct loss *loss = world_loss();
    redlock_acquire_options options = delay_options(SHORT_MS, DELAY_MS, loss);
    redlock_lease *lease = world_acquire_with(manager, "door", &options);
    assert_true(drive_until(world_loop, loss_came, loss, DRIVE_TIMEOUT_MS));
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_true(world_wait_with_key("door", 5, DRIVE_TIMEOUT_MS));
    assert_others_are_denied("door");
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    drive_for(world_loop, 200); /* nothing follows */
    assert_int_equal(servers_with_key(&world_servers, "door"), 5);
    assert_others_are_denied("door");
    assert_int_equal(world_statistics(manager).releases_owed, 0);
}

MANAGER_TEST(the_delay_ends) {
    redlock_manager *other = world_manager_all(PATIENT_MS);
    struct loss *loss = world_loss();
    struct outcome *waited = world_outcome();
    redlock_acquire_options options = delay_options(SHORT_MS, 1000, loss);
    redlock_acquire_options waiting = world_acquire_options(TTL_MS, REDLOCK_WAIT_FOREVER);
    int64_t before_ms = support_now_ms();
    redlock_lease *lease = world_acquire_with(manager, "door", &options);
    assert_is(drive_acquire(world_loop, other, "door", &waiting, waited), REDLOCK_OK);
    /* The server's clock ends it, not ours. */
    assert_true(waited->at_ms - before_ms >= SHORT_MS + 1000 - 10);
    redlock_lease *next = waited->lease;
    assert_int_equal(loss->runs, 1);
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_ERR_LOST);
    assert_is(drive_release(world_loop, next, world_outcome()), REDLOCK_OK);
}
