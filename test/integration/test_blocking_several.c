/* Several resources in one lease, through the blocking client: one call takes all, and each call on
 * a lease is about all of them. */
#include "blocking_kit.h"

#define ITEM(name)                                                                                                     \
    { .size = sizeof(redlock_item), .resource = (name) }

static const redlock_item up[] = {ITEM("a"), ITEM("b"), ITEM("c")};

static size_t key_count(void) {
    return (servers_with_key(&kit_servers, "a") + servers_with_key(&kit_servers, "b") +
            servers_with_key(&kit_servers, "c"));
}

static void assert_invalid(int code, const char *why) {
    char sentence[256];
    assert_is(code, REDLOCK_ERR_INVALID);
    (void)redlock_client_invalid(NULL, sentence, sizeof sentence);
    assert_string_equal(sentence, why);
}

TESTS_WITH(kit_start, kit_stop);

CLIENT_TEST(all_calls_on_a_lease_are_about_all) {
    const redlock_client_acquire_options options = kit_options(60000, 0);
    redlock_lease *lease, *adopted;
    redlock_result *result;
    redlock_item taken[] = {up[0], up[1], up[2]};
    char tokens[3][REDLOCK_TOKEN_SIZE_MAX + 1];
    assert_is(redlock_client_acquire_all(client, up, 3, &options, &lease, &result), REDLOCK_OK);
    assert_ptr_equal(redlock_result_lease(result), lease);
    redlock_result_free(result);
    kit_until(key_count() == 15);
    kit_refused(client, "b", REDLOCK_ERR_CONTENDED);
    assert_is(redlock_client_extend(client, lease, 50000, NULL), REDLOCK_OK);
    assert_is(redlock_client_downgrade(client, lease, NULL), REDLOCK_OK);
    assert_int_equal(redlock_lease_item_count(lease), 3);
    for (size_t i = 0; i < 3; i++) {
        strcpy(tokens[i], redlock_lease_item_token(lease, i));
        taken[i].token = tokens[i];
        taken[i].mode = REDLOCK_SHARED;
    }
    assert_is(redlock_client_forget(client, lease), REDLOCK_OK);
    assert_int_equal(key_count(), 15);
    assert_is(redlock_client_adopt_all(client, taken, 3, NULL, &adopted), REDLOCK_OK);
    assert_is(redlock_client_extend(client, adopted, 50000, NULL), REDLOCK_OK);
    assert_true(redlock_lease_validity_ms(adopted) > 0);
    kit_release(client, adopted);
    kit_expect_no_keys();
}

CLIENT_TEST(the_first_that_is_missing_is_named) {
    const redlock_client_acquire_options options = kit_options(60000, 50);
    redlock_lease *other = kit_acquire(client, "b", 0), *lease;
    redlock_result *result;
    assert_is(redlock_client_acquire_all(client, up, 3, &options, &lease, &result), REDLOCK_ERR_CONTENDED);
    assert_null(lease);
    assert_string_equal(redlock_result_resource(result), "b");
    redlock_result_free(result);
    kit_release(client, other);
    kit_expect_no_keys();
}

static void note_loss(redlock_lease *lease, const char *reason, void *data) {
    kit_must(redlock_lease_validity_ms(lease) == 0 && strncmp(reason, "'b': ", 5) == 0);
    atomic_fetch_add((atomic_int *)data, 1);
}

CLIENT_TEST(a_loss_is_told_once) {
    redlock_client_acquire_options options = kit_options(60000, 0);
    atomic_int lost = 0;
    redlock_lease *lease;
    options.lock.on_lost = note_loss;
    options.lock.lost_data = &lost;
    options.lock.heal = false;
    assert_is(redlock_client_acquire_all(client, up, 3, &options, &lease, NULL), REDLOCK_OK);
    kit_until(key_count() == 15);
    servers_say(&kit_servers, 0, 3, "1", "DEL", "b");
    assert_is(redlock_client_extend(client, lease, 60000, NULL), REDLOCK_ERR_LOST);
    kit_until(atomic_load(&lost) == 1);
    kit_expect_no_keys();
    assert_is(redlock_client_release(client, lease, NULL), REDLOCK_ERR_LOST);
    assert_int_equal(atomic_load(&lost), 1);
}

/* Threads that want two of three in both orders, on clients with one loop and with several. */
struct crowd {
    pthread_t thread;
    redlock_client *client;
    atomic_int *holders; /* of each resource */
    bool reversed;
};

static int hold(redlock_lease *lease, void *data) {
    struct crowd *member = data;
    for (size_t i = 0; i < redlock_lease_item_count(lease); i++) {
        atomic_int *holders = &member->holders[redlock_lease_item_resource(lease, i)[0] - 'a'];
        kit_must(atomic_fetch_add(holders, 1) == 0);
    }
    support_pause_ms(1);
    for (size_t i = 0; i < redlock_lease_item_count(lease); i++) {
        atomic_fetch_sub(&member->holders[redlock_lease_item_resource(lease, i)[0] - 'a'], 1);
    }
    return 7;
}

static void *run_member(void *data) {
    static const redlock_item down[] = {ITEM("c"), ITEM("b"), ITEM("a")};
    struct crowd *member = data;
    const redlock_client_acquire_options options = kit_options(60000, PATIENT_MS);
    for (int i = 0; i < 20; i++) {
        int returned = 0;
        kit_must(redlock_client_with_all(member->client, (member->reversed ? down : up) + i % 2, 2, &options, hold,
                                         member, &returned, NULL) == REDLOCK_OK);
        kit_must(returned == 7);
    }
    return NULL;
}

static void run_crowd(size_t loops) {
    redlock_manager_options options;
    atomic_int holders[3] = {0, 0, 0};
    struct crowd members[6];
    redlock_client *clients[2];
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.loops = loops;
    for (int i = 0; i < 2; i++) {
        assert_is(redlock_client_open(&options, &clients[i], NULL, 0), REDLOCK_OK);
    }
    for (int i = 0; i < 6; i++) {
        members[i] = (struct crowd){.client = clients[i % 2], .holders = holders, .reversed = i % 3 == 0};
        assert_int_equal(pthread_create(&members[i].thread, NULL, run_member, &members[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(members[i].thread, NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_is(redlock_client_close(clients[i]), REDLOCK_OK);
    }
    kit_expect_no_keys();
}

KIT_TEST(threads_in_opposite_orders) {
    run_crowd(1);
}

KIT_TEST(threads_in_opposite_orders_on_several_loops) {
    run_crowd(3);
}

CLIENT_TEST(what_is_refused_says_so) {
    redlock_client_acquire_options options = kit_options(60000, 0);
    const redlock_item twice[] = {ITEM("a"), ITEM("a")};
    redlock_lease *lease;
    redlock_result *result;
    assert_is(redlock_client_acquire_all(client, twice, 2, &options, &lease, &result), REDLOCK_ERR_INVALID);
    char message[256];
    redlock_result_message(result, message, sizeof message);
    assert_string_equal(message,
                        "cannot acquire 'a': invalid argument: items[0] and items[1] are the same resource; it "
                        "can stand in a bundle once.");
    redlock_result_free(result);
    assert_invalid(redlock_client_acquire_all(client, NULL, 2, &options, &lease, NULL), "items is NULL");
    assert_invalid(redlock_client_acquire_all(client, up, 0, &options, &lease, NULL), "count is 0; it must be 1 to 64");
    assert_invalid(redlock_client_acquire_all(client, up, 2, &options, NULL, NULL), "lease is NULL");
    assert_invalid(redlock_client_adopt_all(client, up, 2, NULL, &lease), "token is NULL");
    assert_invalid(redlock_client_adopt_all(client, up, 2, NULL, NULL), "lease is NULL");
    assert_invalid(redlock_client_with_all(client, up, 2, &options, NULL, NULL, NULL, NULL), "work is NULL");
    options.reentrant = true;
    assert_invalid(redlock_client_acquire_all(client, up, 2, &options, &lease, NULL),
                   "a reentrant lease is of one resource");
}
