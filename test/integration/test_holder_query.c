/* Acquires that ask who holds the lock: on the real servers of this machine, and on fake ones that
 * refuse it, ignore it, or say what does not fit together. */
#include "world.h"

#define REDIS_7 "redis_version:7.0.15"
#define NIL     "$-1\r\n"
#define VALUE   "$1\r\nx\r\n"
#define OK      "+OK\r\n"

static struct fake_server *fakes[3];

/* A manager with three servers that say `version`. All of them are READY. */
static redlock_manager *on_fakes(const char *version, const char *first, const char *second, const char *plain) {
    const struct fake_script script = {
        .behave_in_handshake = true,
        .version = version,
        .replies = {
            {"SET GET", first, second}, {"SET", plain, NULL}, {"EVALSHA", ":1\r\n", NULL}, {"EVAL", ":1\r\n", NULL}}};
    const char *uris[3];
    for (size_t i = 0; i < 3; i++) {
        fakes[i] = world_fake(&script);
        uris[i] = fake_server_uri(fakes[i]);
    }
    /* All three must answer, so none of them comes too late for its round. */
    redlock_manager_options options = world_options();
    options.nodes = uris;
    options.node_count = 3;
    options.quorum = 3;
    return world_manager_with(&options);
}

static struct outcome *acquire(redlock_manager *manager, const char *resource) {
    struct outcome *outcome = world_outcome();
    redlock_acquire_options options = world_acquire_options(60000, 0);
    options.order = REDLOCK_ORDER_NONE;
    (void)drive_acquire(world_loop, manager, resource, &options, outcome);
    return outcome;
}

static void release(redlock_lease *lease) {
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

/* All fakes have heard so many of each. */
struct heard {
    int holder_query, plain;
};

static bool all_heard(void *data) {
    const struct heard *heard = data;
    bool all = true;
    for (size_t i = 0; i < 3; i++) {
        all = all && fake_server_replies(fakes[i], "SET GET") == heard->holder_query &&
              fake_server_replies(fakes[i], "SET") == heard->plain;
    }
    return all;
}

static void assert_heard(int holder_query, int plain) {
    struct heard heard = {holder_query, plain};
    if (!drive_until(world_loop, all_heard, &heard, DRIVE_TIMEOUT_MS)) {
        fail_msg("node 0 heard %d SET with GET, and %d without", fake_server_replies(fakes[0], "SET GET"),
                 fake_server_replies(fakes[0], "SET"));
    }
}

TESTS_WITH(world_three, world_end);

WORLD_TEST(an_old_server_is_not_asked) {
    redlock_manager *manager = on_fakes("redis_version:6.2.14", "-ERR syntax error\r\n", NULL, OK);
    release(acquire(manager, "n")->lease);
    assert_heard(0, 1);
}

WORLD_TEST(a_server_that_understands_is_asked_twice_and_then_once) {
    redlock_manager *manager = on_fakes(REDIS_7, NIL, fake_server_own, OK);
    release(acquire(manager, "n")->lease);
    assert_heard(2, 0);
    release(acquire(manager, "n")->lease);
    assert_heard(3, 0);
}

/* Of the command, in whatever words: the plain SET decides, in the same attempt. */
WORLD_TEST(a_refusal_falls_back_to_the_plain_set) {
    static const char *const errors[] = {"-ERR syntax error\r\n",
                                         "-NOPERM User u has no permissions to run the 'set' command\r\n"};
    for (size_t i = 0; i < 2; i++) {
        redlock_manager *manager = on_fakes(REDIS_7, errors[i], NULL, OK);
        release(acquire(manager, "n")->lease);
        assert_heard(2, 1);
        release(acquire(manager, "n")->lease);
        assert_heard(2, 2);
        assert_contains(world_log.text, "so it is not asked any more: ");
        world_close(manager);
        manager = on_fakes(REDIS_7, errors[i], NULL, NIL);
        assert_is(acquire(manager, "n")->code, REDLOCK_ERR_CONTENDED);
        assert_heard(2, 1);
        world_close(manager);
    }
}

/* The first UNKNOWN vote decides, because all three are needed; the others may be pending. */
static void assert_unclear(struct outcome *outcome) {
    size_t node = 0;
    assert_is(outcome->code, REDLOCK_ERR_NO_QUORUM);
    assert_null(outcome->lease);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_GRANTED), 0);
    while (node < 2 && outcome_vote(outcome, node) != REDLOCK_VOTE_UNKNOWN) {
        node++;
    }
    assert_contains(outcome_vote_error(outcome, node), "did not make clear");
}

/* Nil means "held by another" there. Taken for "set", it would let two in. */
WORLD_TEST(a_server_that_ignores_it_grants_nothing_that_is_held) {
    redlock_manager *manager = on_fakes(REDIS_7, NIL, NULL, NIL);
    outcome = acquire(manager, "n");
    assert_unclear(outcome);
    /* Until all three are known. */
    for (int i = 0; i < 3 && (outcome = acquire(manager, "n"))->code != REDLOCK_ERR_CONTENDED; i++) {
        assert_unclear(outcome);
    }
    assert_is(acquire(manager, "n")->code, REDLOCK_ERR_CONTENDED);
}

WORLD_TEST(a_server_that_ignores_it_grants_what_is_free) {
    redlock_manager *manager = on_fakes(REDIS_7, OK, NIL, OK);
    release(acquire(manager, "n")->lease);
    assert_heard(2, 0);
    release(acquire(manager, "n")->lease);
    assert_heard(2, 1);
}

/* It understands, but the key is gone and another's before the second SET comes. */
WORLD_TEST(a_token_of_another_proves_nothing) {
    redlock_manager *manager = on_fakes(REDIS_7, NIL, VALUE, OK);
    assert_unclear(acquire(manager, "n"));
    assert_heard(2, 0);
    assert_unclear(acquire(manager, "n"));
    assert_heard(4, 0);
}

static bool real_ones_name(void) {
    const bool names = strstr(server_ask(&world_servers.at[0], "SET", "probe", "x", "NX", "GET"), "ERR") == NULL;
    (void)server_ask(&world_servers.at[0], "DEL", "probe");
    return names;
}

WORLD_TEST(a_denied_acquire_names_the_holder) {
    const bool names = real_ones_name();
    redlock_manager_options options = world_options();
    options.holder = "web-3:4711";
    redlock_manager *holder = world_manager_with(&options), *other = world_manager_all(PATIENT_MS);
    redlock_lease *lease = acquire(holder, "n")->lease;
    assert_non_null(lease);
    assert_true(world_wait_with_key("n", 3, DRIVE_TIMEOUT_MS));
    for (int i = 0; i < 3; i++) {
        struct outcome *denied = acquire(other, "n");
        assert_is(denied->code, REDLOCK_ERR_CONTENDED);
        const size_t vote = outcome_vote(denied, 0) == REDLOCK_VOTE_DENIED ? 0 : 1;
        assert_string_equal(outcome_vote_error(denied, vote),
                            names ? "held by web-3:4711" : "held under another token");
    }
    release(lease);
    assert_true(world_wait_without_key("n", DRIVE_TIMEOUT_MS));
    /* Once it is proven, too. */
    const long long sets = world_calls(&world_servers.at[0], "set");
    for (int i = 0; i < 8; i++) {
        lease = acquire(other, "n")->lease;
        assert_non_null(lease);
        assert_true(world_wait_with_key("n", 3, DRIVE_TIMEOUT_MS));
        release(lease);
        assert_true(world_wait_without_key("n", DRIVE_TIMEOUT_MS));
    }
    /* The first was sent twice, and few more, if the node's answer came late. */
    assert_in_range(world_calls(&world_servers.at[0], "set") - sets, names ? 9 : 8, names ? 15 : 8);
    lease = acquire(holder, "n")->lease;
    assert_true(world_wait_with_key("n", 3, DRIVE_TIMEOUT_MS));
    struct outcome *denied = acquire(other, "n");
    assert_is(denied->code, REDLOCK_ERR_CONTENDED);
    const size_t vote = outcome_vote(denied, 0) == REDLOCK_VOTE_DENIED ? 0 : 1;
    assert_string_equal(outcome_vote_error(denied, vote), names ? "held by web-3:4711" : "held under another token");
    release(lease);
}

/* Another type, and a value over the limit of a reply: both are held by others. */
MANAGER_TEST(what_is_no_lock_is_held_by_others) {
    static char large[2 * 1024 * 1024];
    memset(large, 'x', sizeof large - 1);
    for (size_t i = 0; i < 3; i++) {
        (void)server_ask(&world_servers.at[i], "RPUSH", "list", "x");
        assert_string_equal(server_ask(&world_servers.at[i], "SET", "large", large), "OK");
    }
    for (int i = 0; i < 2; i++) {
        struct outcome *denied = acquire(manager, "list");
        assert_is(denied->code, REDLOCK_ERR_CONTENDED);
    }
    /* The connections that said so much are lost, once. */
    if (real_ones_name()) {
        assert_is(acquire(manager, "large")->code, REDLOCK_ERR_NO_QUORUM);
        assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    }
    for (int i = 0; i < 2; i++) {
        assert_is(acquire(manager, "large")->code, REDLOCK_ERR_CONTENDED);
    }
}

/* %W, of Redis 7: the user may write the key, but not read it, so no script may run on it. */
WORLD_TEST(who_may_not_read_the_key_gets_no_lock) {
    if (strcmp(
            server_ask(&world_servers.at[0], "ACL", "SETUSER", "w", "on", ">pw", "%W~n", "~redlock:*", "&*", "+@all"),
            "OK")) {
        print_message("the redis-server of this machine has no permissions to read or write alone (Redis 7.0)\n");
        skip();
    }
    for (size_t i = 0; i < 3; i++) {
        (void)server_ask(&world_servers.at[i], "ACL", "SETUSER", "w", "on", ">pw", "%W~n", "~redlock:*", "&*", "+@all");
    }
    redlock_manager *manager = world_manager_as("w:pw@");
    for (int i = 0; i < 2; i++) {
        outcome = acquire(manager, "n");
        assert_is(outcome->code, REDLOCK_ERR_NO_QUORUM);
        assert_null(outcome->lease);
        assert_contains(outcome->message, "must be allowed to read and write the key");
        servers_say(&world_servers, 0, 3, "0", "EXISTS", "n");
    }
}
