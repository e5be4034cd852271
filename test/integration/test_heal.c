/* Healing: keys that a minority of nodes lost or never had come back. They never count as votes,
 * and never live longer than their lease. */
#include "world.h"

#define TTL_MS 30000

static void delete_at(const char *key, size_t count) {
    servers_say(&world_servers, 0, count, "1", "DEL", key);
}

TESTS_WITH(world_five, world_end);

MANAGER_TEST(a_minority_that_lost_it_gets_it_back_with_an_extension) {
    redlock_lease *lease = world_acquire(manager, "door", TTL_MS);
    for (int round = 0; round < 3; round++) {
        assert_true(world_wait_with_key("door", 5, DRIVE_TIMEOUT_MS));
        uint64_t healed = world_statistics(manager).healed;
        delete_at("door", 2);
        assert_is(drive_extend(world_loop, lease, TTL_MS, outcome), REDLOCK_OK);
        assert_true(world_wait_with_key("door", 5, DRIVE_TIMEOUT_MS));
        for (size_t i = 0; i < 5; i++) {
            assert_string_equal(server_ask(&world_servers.at[i], "GET", "door"), redlock_lease_token(lease));
            assert_in_range(server_pttl_ms(&world_servers.at[i], "door"), 1, TTL_MS);
        }
        /* Its answers come after the keys. */
        assert_is(drive_extend(world_loop, lease, TTL_MS, outcome), REDLOCK_OK);
        assert_true(world_statistics(manager).healed >= healed);
    }
    world_release_all(lease, NULL);
    assert_int_equal(world_statistics(manager).healed, 6);
}

/* Another client may have taken a majority in between and given it back. So the lease is lost, even
 * if the keys could be set again. */
MANAGER_TEST(a_majority_that_lost_it_is_a_loss) {
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_loss_options(TTL_MS, 0, loss);
    redlock_lease *lease = world_acquire_with(manager, "door", &options);
    assert_true(world_wait_with_key("door", 5, DRIVE_TIMEOUT_MS));
    delete_at("door", 3);
    assert_is(drive_extend(world_loop, lease, TTL_MS, outcome), REDLOCK_ERR_LOST);
    assert_true(drive_until(world_loop, loss_came, loss, DRIVE_TIMEOUT_MS));
    assert_int_equal(loss->validity_ms, 0);
    /* The other keys are released, and none comes back. */
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    assert_int_equal(world_statistics(manager).healed, 0);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    assert_int_equal(servers_key_count(&world_servers), 0);
}

/* Nodes that refuse the SET and have recovered after a tenth of the ttl. */
MANAGER_TEST(once_after_the_acquire) {
    servers_say(&world_servers, 0, 2, "OK", "CONFIG", "SET", "min-replicas-to-write", "1");
    redlock_lease *lease = world_acquire(manager, "door", TTL_MS);
    assert_false(server_has_key(&world_servers.at[0], "door"));
    servers_say(&world_servers, 0, 2, "OK", "CONFIG", "SET", "min-replicas-to-write", "0");
    assert_true(world_wait_with_key("door", 5, DRIVE_TIMEOUT_MS)); /* without an extension */
    assert_int_equal(world_statistics(manager).extends, 0);
    world_release_all(lease, NULL);
    assert_int_equal(world_statistics(manager).healed, 2);
}

/* On every node, the release runs after a SET that heals. */
MANAGER_TEST(nothing_is_left_where_a_release_follows) {
    for (int round = 0; round < 50; round++) {
        redlock_lease *lease = world_acquire_all(manager, "door", TTL_MS);
        delete_at("door", 2);
        assert_is(drive_extend(world_loop, lease, TTL_MS, outcome), REDLOCK_OK);
        world_release_all(lease, NULL);
    }
}
