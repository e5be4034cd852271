/* Permits through the public API on real nodes: how many hold some, who waits for them, and what
 * becomes of a lease that has several. */
#include "world.h"

#define LONG_MS 60000

static redlock_acquire_options permits_of(uint32_t permits, uint32_t limit, int64_t wait_timeout_ms) {
    redlock_acquire_options options = world_acquire_options(LONG_MS, wait_timeout_ms);
    options.permits = permits;
    options.limit = limit;
    return options;
}

static redlock_lease *take(redlock_manager *manager, uint32_t permits, uint32_t limit) {
    const redlock_acquire_options options = permits_of(permits, limit, 0);
    redlock_lease *lease = world_acquire_with(manager, "door", &options);
    assert_int_equal(redlock_lease_slots(lease, NULL, 0), permits);
    return lease;
}

static void acquire(redlock_manager *manager, redlock_acquire_options options, struct outcome *outcome) {
    assert_is(redlock_acquire(manager, "door", &options, NULL, outcome_collect, outcome), REDLOCK_OK);
}

static void assert_ends(struct outcome *outcome, int code) {
    if (!outcome_wait(world_loop, outcome) || outcome->code != code) {
        fail_msg("%d results, the code is %s, not %s: %s", outcome->runs, redlock_error_name(outcome->code),
                 redlock_error_name(code), outcome->message);
    }
}

static void assert_refused(redlock_manager *manager, uint32_t permits, uint32_t limit, const char *words) {
    struct outcome *outcome = world_outcome();
    acquire(manager, permits_of(permits, limit, 0), outcome);
    assert_ends(outcome, REDLOCK_ERR_CONTENDED);
    assert_contains(outcome->message, words);
}

static void release(redlock_lease *lease) {
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

static uint32_t slot_of(const redlock_lease *lease) {
    uint32_t slot = 99;
    assert_int_equal(redlock_lease_slots(lease, &slot, 1), 1);
    return slot;
}

/* So many wait at the gate, and somebody stands there. */
struct gate {
    long long waiters;
};

static bool is_long(void *data) {
    const struct gate *gate = data;
    size_t like = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        like += world_servers.at[i].pid != 0 && server_has_key(&world_servers.at[i], "door") &&
                atoll(server_ask(&world_servers.at[i], "ZCARD", "door:wait")) == gate->waiters;
    }
    return like > world_servers.count / 2;
}

static void wait_for_gate(long long waiters) {
    struct gate gate = {waiters};
    if (!drive_until(world_loop, is_long, &gate, DRIVE_TIMEOUT_MS)) {
        fail_msg("not %lld wait at the gate", waiters);
    }
}

static struct outcome *wait_for(redlock_manager *manager, uint32_t permits, uint32_t limit, long long waiters) {
    struct outcome *outcome = world_outcome();
    acquire(manager, permits_of(permits, limit, REDLOCK_WAIT_FOREVER), outcome);
    wait_for_gate(waiters);
    return outcome;
}

TESTS_WITH(world_three, world_end);

MANAGER_TEST(so_many_hold_one_at_a_time_and_no_more) {
    redlock_lease *leases[3];
    uint32_t all = 0;
    for (size_t i = 0; i < 3; i++) {
        leases[i] = take(manager, 1, 3);
        all |= 1u << slot_of(leases[i]);
        assert_string_equal(redlock_lease_resource(leases[i]), "door");
    }
    assert_int_equal(all, 7);
    assert_refused(manager, 1, 3, "too few slots are free");
    const uint32_t slot = slot_of(leases[1]);
    release(leases[1]);
    leases[1] = take(manager, 1, 3);
    assert_int_equal(slot_of(leases[1]), slot);
    for (size_t i = 0; i < 3; i++) {
        release(leases[i]);
    }
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(several_are_one_lease) {
    redlock_lease *lease = take(manager, 3, 5);
    uint32_t slots[4] = {9, 9, 9, 9};
    assert_int_equal(redlock_lease_slots(lease, slots, 2), 3);
    assert_true(slots[0] < 5 && slots[1] < 5 && slots[2] == 9);
    assert_refused(manager, 3, 5, "too few slots are free");
    redlock_lease *other = take(manager, 2, 5);
    assert_is(drive_extend(world_loop, lease, 2 * LONG_MS, outcome), REDLOCK_OK);
    assert_true(redlock_lease_validity_ms(lease) > LONG_MS);
    release(lease);
    release(other);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(more_than_the_limit_are_refused) {
    const struct {
        redlock_acquire_options options;
        const char *words;
    } wrong[] = {{permits_of(4, 3, 0), "permits is 4, and limit is 3"},
                 {permits_of(0, 3, 0), "limit is for permits"},
                 {permits_of(1, 0, 0), "limit is 0; it must be 1 to 4096"},
                 {permits_of(1, 4097, 0), "limit is 4097"},
                 {permits_of(65, 100, 0), "permits is 65; it must be 1 to 64"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_is(redlock_acquire(manager, "door", &wrong[i].options, NULL, outcome_collect, outcome),
                  REDLOCK_ERR_INVALID);
        assert_contains(redlock_manager_invalid(manager), wrong[i].words);
    }
    redlock_acquire_options options = permits_of(1, 3, 0);
    options.mode = REDLOCK_SHARED;
    assert_is(redlock_acquire(manager, "door", &options, NULL, outcome_collect, outcome), REDLOCK_ERR_INVALID);
    assert_contains(redlock_manager_invalid(manager), "permits are not for SHARED");
}

WORLD_TEST(who_waits_gets_what_is_released) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *first = take(manager, 1, 2), *second = take(manager, 1, 2);
    struct outcome *waits = wait_for(other, 1, 2, 0);
    struct outcome *behind = wait_for(manager, 1, 2, 1);
    assert_refused(manager, 1, 2, "the gate of the slots");
    const uint32_t slot = slot_of(second);
    release(second);
    assert_ends(waits, REDLOCK_OK);
    assert_int_equal(slot_of(waits->lease), slot);
    assert_int_equal(behind->runs, 0);
    release(first);
    assert_ends(behind, REDLOCK_OK);
    release(behind->lease);
    release(waits->lease);
    assert_true(world_wait_without_key("door", DRIVE_TIMEOUT_MS));
}

/* Without being told, it would look only after the retry delay. */
WORLD_TEST(a_release_is_told_at_the_gate) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_acquire_options options = permits_of(1, 1, REDLOCK_WAIT_FOREVER);
    options.retry_delay_min_ms = options.retry_delay_max_ms = LONG_MS;
    redlock_lease *lease = take(manager, 1, 1);
    acquire(other, options, outcome);
    wait_for_gate(0);
    drive_for(world_loop, 50);
    release(lease);
    assert_ends(outcome, REDLOCK_OK);
    release(outcome->lease);
}

WORLD_TEST(who_wants_several_waits_until_so_many_are_free) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *leases[3];
    for (size_t i = 0; i < 3; i++) {
        leases[i] = take(manager, 1, 3);
    }
    struct outcome *waits = wait_for(other, 2, 3, 0);
    struct outcome *behind = wait_for(manager, 1, 3, 1);
    release(leases[0]);
    drive_for(world_loop, 100);
    assert_int_equal(waits->runs + behind->runs, 0); /* one is free: he passes nobody */
    release(leases[1]);
    assert_ends(waits, REDLOCK_OK);
    assert_int_equal(redlock_lease_slots(waits->lease, NULL, 0), 2);
    release(leases[2]);
    assert_ends(behind, REDLOCK_OK);
    release(waits->lease);
    release(behind->lease);
}

WORLD_TEST(who_gives_up_leaves_the_gate) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *lease = take(manager, 1, 1);
    redlock_request *request;
    const redlock_acquire_options options = permits_of(1, 1, REDLOCK_WAIT_FOREVER);
    assert_is(redlock_acquire(other, "door", &options, &request, outcome_collect, outcome), REDLOCK_OK);
    wait_for_gate(0);
    struct outcome *behind = wait_for(manager, 1, 1, 1), *shortly = world_outcome();
    acquire(other, permits_of(1, 1, 100), shortly);
    assert_ends(shortly, REDLOCK_ERR_CONTENDED);
    redlock_request_cancel(request);
    assert_ends(outcome, REDLOCK_ERR_CANCELLED);
    release(lease);
    assert_ends(behind, REDLOCK_OK);
    release(behind->lease);
    assert_true(world_wait_without_key("door", DRIVE_TIMEOUT_MS));
}

WORLD_TEST(a_manager_that_closes_leaves_the_gate) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *lease = take(manager, 1, 1);
    struct outcome *waits = wait_for(other, 1, 1, 0), *behind = wait_for(other, 1, 1, 1);
    world_close(other);
    assert_ends(waits, REDLOCK_ERR_CLOSED);
    assert_ends(behind, REDLOCK_ERR_CLOSED);
    release(lease);
    assert_true(world_wait_without_key("door", DRIVE_TIMEOUT_MS));
}

/* A lock of the same name closes the gate, and takes nothing from who is in. */
MANAGER_TEST(a_lock_of_the_name_keeps_newcomers_out) {
    redlock_lease *permit = take(manager, 1, 2);
    redlock_lease *lock = world_acquire(manager, "door", LONG_MS);
    assert_refused(manager, 1, 2, "its name is locked");
    assert_true(redlock_lease_validity_ms(permit) > 0);
    assert_int_equal(redlock_lease_slots(lock, NULL, 0), 0);
    release(lock);
    redlock_lease *other = take(manager, 1, 2);
    release(other);
    release(permit);
}

MANAGER_TEST(limits_may_differ) {
    redlock_lease *leases[5];
    for (size_t i = 0; i < 4; i++) {
        leases[i] = take(manager, 1, 4);
    }
    assert_refused(manager, 1, 3, "too few slots are free");
    leases[4] = take(manager, 1, 5);
    assert_int_equal(slot_of(leases[4]), 4);
    assert_refused(manager, 1, 5, "too few slots are free");
    for (size_t i = 0; i < 5; i++) {
        release(leases[i]);
    }
}

MANAGER_TEST(permits_are_adopted_by_their_slots) {
    redlock_lease *lease = take(manager, 2, 4), *adopted;
    uint32_t slots[2];
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    (void)redlock_lease_slots(lease, slots, 2);
    (void)snprintf(token, sizeof token, "%s", redlock_lease_token(lease));
    redlock_lease_forget(lease);
    redlock_acquire_options options = permits_of(2, 4, 0);
    assert_is(redlock_adopt(manager, "door", token, &options, &adopted), REDLOCK_ERR_INVALID);
    assert_contains(redlock_manager_invalid(manager), "permits are adopted with slots");
    options.slots = slots;
    assert_is(redlock_acquire(manager, "door", &options, NULL, outcome_collect, outcome), REDLOCK_ERR_INVALID);
    assert_is(redlock_adopt(manager, "door", token, &options, &adopted), REDLOCK_OK);
    assert_int_equal(redlock_lease_slots(adopted, NULL, 0), 2);
    assert_is(drive_extend(world_loop, adopted, LONG_MS, outcome), REDLOCK_OK);
    release(adopted);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    options.slots = (const uint32_t[2]){3, 3};
    assert_is(redlock_adopt(manager, "door", token, &options, &adopted), REDLOCK_ERR_INVALID);
    assert_contains(redlock_manager_invalid(manager), "slots names slot 3 twice");
    options.slots = (const uint32_t[2]){3, 4};
    assert_is(redlock_adopt(manager, "door", token, &options, &adopted), REDLOCK_ERR_INVALID);
    assert_contains(redlock_manager_invalid(manager), "slots is 4; it must be 0 to 3 (below limit)");
}

static void delete_at(size_t server, const char *key) {
    assert_string_equal(server_ask(&world_servers.at[server], "DEL", key), "1");
}

/* One of two slots is gone at two of three nodes: so is the lease. */
MANAGER_TEST(a_lease_that_has_lost_one_slot_is_lost) {
    redlock_acquire_options options = world_loss_options(5000, 0, world_loss());
    struct loss *loss = options.lost_data;
    char key[16];
    uint32_t slots[2];
    options.permits = 2;
    options.limit = 4;
    redlock_lease *lease = world_acquire_with(manager, "door", &options);
    (void)redlock_lease_slots(lease, slots, 2);
    (void)snprintf(key, sizeof key, "door#%u", slots[1]);
    assert_true(world_wait_with_key(key, 3, DRIVE_TIMEOUT_MS));
    delete_at(0, key);
    assert_is(drive_extend(world_loop, lease, 5000, outcome), REDLOCK_OK);
    assert_true(world_wait_with_key(key, 3, DRIVE_TIMEOUT_MS)); /* it was healed */
    delete_at(0, key);
    delete_at(1, key);
    assert_is(drive_extend(world_loop, lease, 5000, outcome), REDLOCK_ERR_LOST);
    assert_int_equal(loss->runs, 1);
    (void)drive_release(world_loop, lease, outcome);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(each_permit_has_a_fencing_token_of_its_own) {
    redlock_acquire_options options = permits_of(1, 2, 0);
    options.fencing = true;
    redlock_lease *first = world_acquire_with(manager, "door", &options);
    redlock_lease *second = world_acquire_with(manager, "door", &options);
    assert_true(redlock_lease_fence(second) > redlock_lease_fence(first));
    assert_true(redlock_lease_fence(first) > 0);
    release(first);
    release(second);
}

/* Nodes that gave different slots: the lease has those of a quorum, and gives the others back. */
MANAGER_TEST(what_a_minority_gave_is_given_back) {
    assert_string_equal(server_ask(&world_servers.at[0], "SET", "door#0", "theirs", "PX", "60000"), "OK");
    redlock_lease *lease = take(manager, 2, 3);
    uint32_t slots[2];
    (void)redlock_lease_slots(lease, slots, 2);
    const uint32_t left = 3 - slots[0] - slots[1];
    if (left != 0) { /* where it began at 1, all gave 1 and 2 */
        assert_true(world_wait_without_key(left == 1 ? "door#1" : "door#2", DRIVE_TIMEOUT_MS));
    }
    release(lease);
    delete_at(0, "door#0");
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(without_order_it_tries_again) {
    redlock_acquire_options options = permits_of(1, 1, REDLOCK_WAIT_FOREVER);
    options.order = REDLOCK_ORDER_NONE;
    options.retry_delay_min_ms = options.retry_delay_max_ms = 20;
    redlock_lease *lease = take(manager, 1, 1);
    acquire(manager, options, outcome);
    drive_for(world_loop, 100);
    assert_int_equal(outcome->runs, 0);
    release(lease);
    assert_ends(outcome, REDLOCK_OK);
    release(outcome->lease);
}

WORLD_TEST(a_node_that_is_down_changes_nothing) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    server_stop(&world_servers.at[2]);
    redlock_lease *lease = take(manager, 1, 1);
    struct outcome *waits = wait_for(other, 1, 1, 0);
    release(lease);
    assert_ends(waits, REDLOCK_OK);
    release(waits->lease);
    server_restart(&world_servers.at[2]);
}
