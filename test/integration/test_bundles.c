/* Several resources in one lease through the public API on real nodes: free, one that is not, waits
 * in opposite orders, losses, extension, adoption, cancel, timeout and close. */
#include "world.h"

#define LONG_MS 60000
#define ITEM(name)                                                                                                     \
    { .size = sizeof(redlock_item), .resource = (name) }
#define ITEMS(...) ((const redlock_item[]){__VA_ARGS__}), sizeof((redlock_item[]){__VA_ARGS__}) / sizeof(redlock_item)
#define ABC        ITEMS(ITEM("c"), ITEM("a"), ITEM("b"))

static void ask(redlock_manager *manager, const redlock_item *items, size_t count,
                const redlock_acquire_options *options, struct outcome *outcome) {
    assert_is(redlock_acquire_all(manager, items, count, options, NULL, outcome_collect, outcome), REDLOCK_OK);
}

static void assert_ends(struct outcome *outcome, int code) {
    if (!outcome_wait(world_loop, outcome) || outcome->code != code) {
        fail_msg("%d results, the code is %s, not %s", outcome->runs, redlock_error_name(outcome->code),
                 redlock_error_name(code));
    }
}

static redlock_lease *take(redlock_manager *manager, const redlock_item *items, size_t count,
                           const redlock_acquire_options *options) {
    struct outcome *outcome = world_outcome();
    ask(manager, items, count, options, outcome);
    assert_ends(outcome, REDLOCK_OK);
    return outcome->lease;
}

static void release(redlock_lease *lease) {
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

/* So many keys at each node. */
static bool has_keys(void *data) {
    bool all = true;
    for (size_t i = 0; i < world_servers.count; i++) {
        const char *count = server_ask(&world_servers.at[i], "EXISTS", "a", "b", "c");
        all &= atoll(count) == *(const long long *)data;
    }
    return all;
}

static void wait_for_keys(long long count) {
    if (!drive_until(world_loop, has_keys, &count, DRIVE_TIMEOUT_MS)) {
        fail_msg("not %lld keys at each node", count);
    }
}

static bool someone_waits(void *data) {
    size_t count = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        count += strcmp(server_ask(&world_servers.at[i], "ZCARD", data), "1") == 0;
    }
    return count == world_servers.count;
}

static void wait_for_a_waiter(const char *queue) {
    assert_true(drive_until(world_loop, someone_waits, (void *)(uintptr_t)queue, DRIVE_TIMEOUT_MS));
}

TESTS_WITH(world_three, world_end);

MANAGER_TEST(all_or_none) {
    redlock_manager *other = world_manager_all(PATIENT_MS);
    redlock_lease *lease = take(manager, ABC, TIMES(LONG_MS, 0));
    assert_int_equal(redlock_lease_item_count(lease), 3);
    assert_in_range(redlock_lease_validity_ms(lease), 1, LONG_MS);
    wait_for_keys(3);
    ask(other, ITEMS(ITEM("0"), ITEM("b"), ITEM("z")), TIMES(LONG_MS, 0), outcome);
    assert_ends(outcome, REDLOCK_ERR_CONTENDED);
    assert_string_equal(redlock_result_resource(outcome->copy), "b");
    assert_true(world_wait_without_key("0", DRIVE_TIMEOUT_MS) && world_wait_without_key("z", DRIVE_TIMEOUT_MS));
    world_release_all(lease, NULL);
}

WORLD_TEST(it_waits_for_the_first_that_is_missing) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *b = world_acquire(manager, "b", LONG_MS), *c = world_acquire(manager, "c", LONG_MS);
    ask(other, ABC, TIMES(LONG_MS, LONG_MS), outcome);
    wait_for_a_waiter("b:wait");
    wait_for_keys(3); /* a is kept */
    release(b);
    wait_for_a_waiter("c:wait");
    assert_int_equal(outcome->runs, 0);
    release(c);
    assert_ends(outcome, REDLOCK_OK);
    assert_int_equal(outcome->attempts, 4); /* all; b; c; c */
    world_release_all(outcome->lease, NULL);
}

/* The later ones are of use to others meanwhile. */
WORLD_TEST(what_comes_after_the_missing_one_is_free_meanwhile) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *b = world_acquire(manager, "b", LONG_MS);
    ask(other, ABC, TIMES(LONG_MS, LONG_MS), outcome);
    wait_for_a_waiter("b:wait");
    assert_true(world_wait_without_key("c", DRIVE_TIMEOUT_MS));
    redlock_lease *c = world_acquire(manager, "c", LONG_MS);
    release(c);
    release(b);
    assert_ends(outcome, REDLOCK_OK);
    world_release_all(outcome->lease, NULL);
}

/* Six who want two of three resources in opposite orders, again and again. */
struct crowd {
    int left, ended;
    int holders[3]; /* of each resource */
};

struct member {
    struct ev_timer timer; /* first member: it works for a millisecond */
    struct crowd *crowd;
    redlock_manager *manager;
    redlock_lease *lease;
    bool reversed;
};

static void count_holders(struct member *member, int by) {
    for (size_t i = 0; i < redlock_lease_item_count(member->lease); i++) {
        const int resource = redlock_lease_item_resource(member->lease, i)[0] - 'a';
        member->crowd->holders[resource] += by;
        assert_in_range(member->crowd->holders[resource], 0, 1);
    }
}

static void on_acquired(const redlock_result *result, void *data) {
    struct member *member = data;
    assert_is(redlock_result_code(result), REDLOCK_OK);
    member->lease = redlock_result_lease(result);
    count_holders(member, 1);
    ev_timer_set(&member->timer, 0.001, 0);
    ev_timer_start(world_loop, &member->timer);
}

static void go_on(struct member *member) {
    static const redlock_item up[] = {ITEM("a"), ITEM("b"), ITEM("c")}, down[] = {ITEM("c"), ITEM("b"), ITEM("a")};
    const redlock_acquire_options options = world_acquire_options(LONG_MS, LONG_MS);
    const int turn = member->crowd->left--;
    if (turn <= 0) {
        member->crowd->ended++;
        return;
    }
    assert_is(redlock_acquire_all(member->manager, (member->reversed ? down : up) + turn % 2, 2, &options, NULL,
                                  on_acquired, member),
              REDLOCK_OK);
}

static void on_released(const redlock_result *result, void *data) {
    assert_is(redlock_result_code(result), REDLOCK_OK);
    go_on(data);
}

static void on_worked(struct ev_loop *loop, struct ev_timer *timer, int events) {
    (void)loop, (void)events;
    struct member *member = (struct member *)timer;
    count_holders(member, -1);
    assert_is(redlock_release(member->lease, on_released, member), REDLOCK_OK);
}

static bool all_ended(void *data) {
    return ((struct crowd *)data)->ended == 6;
}

WORLD_TEST(opposite_orders_do_not_wait_for_each_other) {
    struct crowd crowd = {.left = 300};
    struct member members[6];
    redlock_manager *managers[] = {world_listening(), world_listening(), world_listening()};
    for (int i = 0; i < 6; i++) {
        members[i] = (struct member){.crowd = &crowd, .manager = managers[i % 3], .reversed = i % 2 == 1};
        ev_init(&members[i].timer, on_worked);
        go_on(&members[i]);
    }
    assert_true(drive_until(world_loop, all_ended, &crowd, 60000));
    assert_true(world_wait_without_key("b", DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(who_loses_one_loses_all) {
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_loss_options(LONG_MS, 0, loss);
    options.heal = false;
    redlock_lease *lease = take(manager, ABC, &options);
    wait_for_keys(3);
    servers_say(&world_servers, 0, 2, "1", "DEL", "b");
    assert_is(drive_extend(world_loop, lease, LONG_MS, outcome), REDLOCK_ERR_LOST);
    assert_string_equal(redlock_result_resource(outcome->copy), "b");
    assert_true(drive_until(world_loop, loss_came, loss, DRIVE_TIMEOUT_MS));
    assert_int_equal(loss->runs, 1);
    assert_int_equal(loss->validity_ms, 0);
    assert_int_equal(strncmp(loss->reason, "'b': ", 5), 0);
    assert_true(world_wait_without_key("a", DRIVE_TIMEOUT_MS) && world_wait_without_key("c", DRIVE_TIMEOUT_MS));
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_ERR_LOST);
}

MANAGER_TEST(its_deadline_is_that_of_all) {
    struct loss *loss = world_loss();
    const redlock_acquire_options options = world_loss_options(300, 0, loss);
    redlock_lease *lease = take(manager, ABC, &options);
    assert_true(drive_until(world_loop, loss_came, loss, DRIVE_TIMEOUT_MS));
    drive_for(world_loop, 20);
    assert_int_equal(loss->runs, 1);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
}

/* One that is kept is lost: the keys are deleted while it waits. */
WORLD_TEST(one_that_is_lost_meanwhile_is_taken_again) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_acquire_options options = world_acquire_options(1500, LONG_MS);
    options.heal = false;
    redlock_lease *b = world_acquire(manager, "b", LONG_MS);
    ask(other, ABC, &options, outcome);
    wait_for_a_waiter("b:wait");
    wait_for_keys(2);
    servers_say(&world_servers, 0, 3, "1", "DEL", "a");
    wait_for_keys(2); /* a third of the ttl later */
    wait_for_a_waiter("b:wait");
    release(b);
    assert_ends(outcome, REDLOCK_OK);
    wait_for_keys(3);
    world_release_all(outcome->lease, NULL);
}

MANAGER_TEST(it_is_extended_and_adopted_as_a_whole) {
    redlock_manager *other = world_manager_all(PATIENT_MS);
    redlock_lease *lease = take(manager, ABC, TIMES(5000, 0)), *adopted;
    char tokens[3][REDLOCK_TOKEN_SIZE_MAX + 1];
    redlock_item items[] = {ITEM("c"), ITEM("a"), ITEM("b")};
    assert_is(drive_extend(world_loop, lease, LONG_MS, outcome), REDLOCK_OK);
    assert_true(redlock_lease_validity_ms(lease) > 5000);
    for (size_t i = 0; i < 3; i++) {
        strcpy(tokens[i], redlock_lease_item_token(lease, i));
        items[i].token = tokens[i];
    }
    redlock_lease_forget(lease);
    assert_is(redlock_adopt_all(other, items, 3, TIMES(LONG_MS, 0), &adopted), REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(adopted), 0);
    assert_is(drive_extend(world_loop, adopted, LONG_MS, outcome), REDLOCK_OK);
    assert_true(redlock_lease_validity_ms(adopted) > 5000);
    world_release_all(adopted, NULL);
}

MANAGER_TEST(each_item_has_a_fencing_token) {
    redlock_acquire_options options = world_acquire_options(LONG_MS, 0);
    uint64_t last[2] = {0, 0};
    options.fencing = true;
    for (int i = 0; i < 3; i++) {
        redlock_lease *lease = take(manager, ITEMS(ITEM("b"), ITEM("a")), &options);
        for (size_t item = 0; item < 2; item++) {
            assert_true(redlock_lease_item_fence(lease, item) > last[item]);
            last[item] = redlock_lease_item_fence(lease, item);
        }
        release(lease);
    }
}

/* Two who read one of their items, and one who writes it. */
WORLD_TEST(modes_are_mixed) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_item items[] = {ITEM("a"), ITEM("b")}, others[] = {ITEM("b"), ITEM("c")};
    items[1].mode = others[0].mode = REDLOCK_SHARED;
    redlock_lease *first = take(manager, items, 2, TIMES(LONG_MS, 0));
    redlock_lease *second = take(other, others, 2, TIMES(LONG_MS, 0));
    ask(manager, ITEMS(ITEM("b")), TIMES(LONG_MS, LONG_MS), outcome);
    wait_for_a_waiter("b:wait");
    release(first);
    assert_int_equal(outcome->runs, 0);
    release(second);
    assert_ends(outcome, REDLOCK_OK);
    world_release_all(outcome->lease, NULL);
}

WORLD_TEST(a_cancel_gives_all_back) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_request *request;
    redlock_lease *c = world_acquire(manager, "c", LONG_MS);
    assert_is(redlock_acquire_all(other, ABC, TIMES(LONG_MS, LONG_MS), &request, outcome_collect, outcome), REDLOCK_OK);
    wait_for_a_waiter("c:wait");
    wait_for_keys(3);
    redlock_request_cancel(request);
    assert_ends(outcome, REDLOCK_ERR_CANCELLED);
    wait_for_keys(1);
    world_release_all(c, NULL);
}

WORLD_TEST(a_wait_ends_in_time) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *c = world_acquire(manager, "c", LONG_MS);
    ask(other, ABC, TIMES(LONG_MS, 300), outcome);
    wait_for_a_waiter("c:wait");
    assert_ends(outcome, REDLOCK_ERR_CONTENDED);
    assert_string_equal(redlock_result_resource(outcome->copy), "c");
    wait_for_keys(1);
    world_release_all(c, NULL);
}

WORLD_TEST(a_close_while_it_waits) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *c = world_acquire(manager, "c", LONG_MS);
    ask(other, ABC, TIMES(LONG_MS, LONG_MS), outcome);
    wait_for_a_waiter("c:wait");
    world_close(other);
    assert_int_equal(outcome->runs, 1);
    assert_is(outcome->code, REDLOCK_ERR_CLOSED);
    wait_for_keys(1);
    world_release_all(c, NULL);
}

MANAGER_TEST(a_close_gives_back_what_is_held) {
    (void)take(manager, ABC, TIMES(LONG_MS, 0));
    wait_for_keys(3);
    world_close(manager);
    wait_for_keys(0);
}

/* Under a guard each item waits for the nodes, and so does the bundle. */
WORLD_TEST(under_guards_before_the_nodes_have_greeted) {
    redlock_manager_options options = world_options();
    options.restart_guard = REDLOCK_RESTART_GUARD_OBSERVED;
    options.clock_guard = true;
    options.ttl_max_ms = 2 * LONG_MS;
    redlock_manager *manager = world_manager_at_once(&options);
    redlock_lease *lease = take(manager, ABC, TIMES(LONG_MS, LONG_MS));
    world_release_all(lease, NULL);
}

WORLD_TEST(a_node_that_is_down_keeps_nobody_out) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_lease *b = world_acquire(manager, "b", LONG_MS);
    server_kill(&world_servers.at[2]);
    ask(other, ABC, TIMES(LONG_MS, LONG_MS), outcome);
    drive_for(world_loop, 50);
    release(b);
    assert_ends(outcome, REDLOCK_OK);
    release(outcome->lease);
    server_restart(&world_servers.at[2]);
}
