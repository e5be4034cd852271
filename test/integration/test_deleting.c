/* Releases by DELEX and DELIFEQ, where the server has them, and by the script where it refuses: on
 * fake servers that say they are new, and on the real ones of this machine. */
#include "world.h"

#define REDIS_8_4  "redis_version:8.4.0"
#define VALKEY_9_0 "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.1"
#define UNKNOWN    "-ERR unknown command 'DELEX', with args beginning with: 'd' 'IFEQ' \r\n"

static struct fake_server *fakes[3];

/* A manager with three servers that say `version`. They answer a command to delete, then a
 * script. */
static redlock_manager *on_fakes(const char *version, const char *command, const char *reply, const char *by_script) {
    const struct fake_script script = {.behave_in_handshake = true,
                                       .version = version,
                                       .replies = {{"SET GET", "$-1\r\n", fake_server_own},
                                                   {"SET", "+OK\r\n", NULL},
                                                   {command, reply, NULL},
                                                   {"EVALSHA", by_script, NULL},
                                                   {"EVAL", by_script, NULL}}};
    const char *uris[3];
    for (size_t i = 0; i < 3; i++) {
        fakes[i] = world_fake(&script);
        uris[i] = fake_server_uri(fakes[i]);
    }
    return world_manager(uris, 3, PATIENT_MS);
}

static redlock_lease *acquire(redlock_manager *manager, redlock_order order) {
    redlock_acquire_options options = world_acquire_options(60000, 0);
    struct outcome *outcome = world_outcome();
    options.order = order;
    assert_is(drive_acquire(world_loop, manager, "d", &options, outcome), REDLOCK_OK);
    return outcome->lease;
}

static struct outcome *release(redlock_manager *manager, redlock_order order) {
    struct outcome *released = world_outcome();
    (void)drive_release(world_loop, acquire(manager, order), released);
    return released;
}

/* Every fake has answered so many of each. A release is over with a quorum of answers, so wait. */
struct heard {
    const char *command;
    int deleted, by_sha, by_source;
};

static bool all_heard(void *data) {
    const struct heard *heard = data;
    bool all = true;
    for (size_t i = 0; i < 3; i++) {
        all = all && fake_server_replies(fakes[i], heard->command) == heard->deleted &&
              fake_server_replies(fakes[i], "EVALSHA") == heard->by_sha &&
              fake_server_replies(fakes[i], "EVAL") == heard->by_source;
    }
    return all;
}

static void assert_heard(const char *command, int deleted, int by_sha, int by_source) {
    struct heard heard = {command, deleted, by_sha, by_source};
    if (!drive_until(world_loop, all_heard, &heard, DRIVE_TIMEOUT_MS)) {
        fail_msg("node 0 heard %s %d times, EVALSHA %d, EVAL %d", command, fake_server_replies(fakes[0], command),
                 fake_server_replies(fakes[0], "EVALSHA"), fake_server_replies(fakes[0], "EVAL"));
    }
}

TESTS_WITH(world_three, world_end);

WORLD_TEST(a_new_server_is_asked_by_its_command) {
    static const char *const commands[][2] = {{REDIS_8_4, "DELEX"}, {VALKEY_9_0, "DELIFEQ"}};
    for (size_t i = 0; i < 2; i++) {
        redlock_manager *manager = on_fakes(commands[i][0], commands[i][1], ":1\r\n", ":1\r\n");
        assert_is(release(manager, REDLOCK_ORDER_NONE)->code, REDLOCK_OK);
        assert_heard(commands[i][1], 1, 0, 0);
        assert_is(release(manager, REDLOCK_ORDER_FAIR)->code, REDLOCK_OK);
        assert_heard(commands[i][1], 2, 0, 0);
        assert_int_equal(world_statistics(manager).released, 2);
    }
}

WORLD_TEST(a_server_that_says_it_is_older_is_not) {
    redlock_manager *manager = on_fakes("redis_version:8.2.1", "DELEX", ":1\r\n", ":1\r\n");
    assert_is(release(manager, REDLOCK_ORDER_NONE)->code, REDLOCK_OK);
    assert_heard("DELEX", 0, 1, 0);
}

/* The command may have met a mark. */
WORLD_TEST(where_the_command_deletes_nothing_the_script_follows) {
    redlock_manager *manager = on_fakes(REDIS_8_4, "DELEX", ":0\r\n", ":2\r\n");
    for (int times = 1; times <= 2; times++) { /* and the command is still the first */
        assert_is(release(manager, REDLOCK_ORDER_FAIR)->code, REDLOCK_OK);
        assert_heard("DELEX", times, times, 0);
    }
    assert_int_equal(world_statistics(manager).releases_owed, 0);
}

WORLD_TEST(what_was_not_there_any_more_is_lost) {
    redlock_manager *manager = on_fakes(REDIS_8_4, "DELEX", ":0\r\n", ":0\r\n");
    struct outcome *released = release(manager, REDLOCK_ORDER_NONE);
    assert_is(released->code, REDLOCK_ERR_LOST);
    assert_in_range(outcome_votes(released, REDLOCK_VOTE_DENIED), 2, 3); /* two of three decide */
    const size_t denied = outcome_vote(released, 0) == REDLOCK_VOTE_DENIED ? 0 : 1;
    assert_string_equal(outcome_vote_error(released, denied), "the key is missing");
    assert_heard("DELEX", 1, 1, 0);
    assert_int_equal(world_statistics(manager).releases_owed, 0);
}

/* Whatever the error, the release goes on by the script, and the next one begins with it. */
WORLD_TEST(a_refusal_falls_back_to_the_script) {
    static const char *const errors[] = {UNKNOWN, "-NOPERM User u has no permissions to run the 'delex' command\r\n",
                                         "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
                                         "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        redlock_manager *manager = on_fakes(REDIS_8_4, "DELEX", errors[i], ":1\r\n");
        memset(&world_log, 0, sizeof world_log);
        assert_is(release(manager, REDLOCK_ORDER_NONE)->code, REDLOCK_OK);
        assert_heard("DELEX", 1, 0, 1);
        assert_is(release(manager, REDLOCK_ORDER_NONE)->code, REDLOCK_OK);
        assert_heard("DELEX", 1, 1, 1);
        assert_int_equal(world_statistics(manager).releases_owed, 0);
        assert_contains(world_log.text, "so releases use the script: ");
        assert_lacks(world_log.text, "args beginning");
        world_close(manager);
    }
}

WORLD_TEST(a_node_that_also_refuses_the_script_owes_the_release) {
    redlock_manager *manager = on_fakes(REDIS_8_4, "DELEX", UNKNOWN, "-MISCONF no writes\r\n");
    struct outcome *released = release(manager, REDLOCK_ORDER_NONE);
    assert_is(released->code, REDLOCK_ERR_NO_QUORUM);
    assert_string_equal(outcome_vote_error(released, 0), "MISCONF no writes");
    assert_int_equal(world_statistics(manager).releases_owed, 1);
}

WORLD_TEST(a_reply_out_of_protocol_is_no_release) {
    redlock_manager *manager = on_fakes(VALKEY_9_0, "DELIFEQ", "+OK\r\n", ":1\r\n");
    struct outcome *released = release(manager, REDLOCK_ORDER_NONE);
    assert_is(released->code, REDLOCK_ERR_NO_QUORUM);
    assert_is(outcome_vote(released, 0), REDLOCK_VOTE_UNKNOWN);
    /* The library asks the next connection, by the script. */
    assert_heard("DELIFEQ", 1, 1, 0);
}

/* The command of the real servers: "delex", "delifeq", or NULL. */
static const char *real_command(void) {
    static const char *const commands[] = {"delex", "delifeq"};
    for (size_t i = 0; i < 2; i++) {
        if (strstr(server_ask(&world_servers.at[0], commands[i]), "wrong number of arguments")) {
            return commands[i];
        }
    }
    return NULL;
}

static long long real_calls(const char *command) {
    return command ? world_calls(&world_servers.at[0], command) : 0;
}

MANAGER_TEST(a_real_server_deletes_by_what_it_has) {
    const char *command = real_command();
    const long long deleted = real_calls(command), by_script = real_calls("evalsha");
    redlock_lease *lease = acquire(manager, REDLOCK_ORDER_NONE);
    struct outcome *released = world_outcome();
    assert_is(drive_release(world_loop, lease, released), REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    assert_int_equal(real_calls(command) - deleted, command != NULL);
    assert_int_equal(real_calls("evalsha") - by_script, command == NULL);
    /* Somebody else's lock stays. */
    lease = acquire(manager, REDLOCK_ORDER_NONE);
    servers_say(&world_servers, 0, 3, "OK", "SET", "d", "foreign");
    assert_is(drive_release(world_loop, lease, released), REDLOCK_ERR_LOST);
    world_close(manager); /* waits for the third answer */
    servers_say(&world_servers, 0, 3, "foreign", "GET", "d");
    assert_int_equal(real_calls(command) - deleted, command ? 2 : 0);
}

MANAGER_TEST(who_waits_in_line_gets_what_was_only_deleted) {
    redlock_lease *lease = acquire(manager, REDLOCK_ORDER_NONE);
    struct outcome *waiter = world_outcome(), *released = world_outcome();
    assert_is(redlock_acquire(manager, "d", TIMES(60000, DRIVE_TIMEOUT_MS), NULL, outcome_collect, waiter), REDLOCK_OK);
    assert_true(world_wait_with_key("d:wait", 3, DRIVE_TIMEOUT_MS));
    assert_is(drive_release(world_loop, lease, released), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, waiter));
    assert_is(waiter->code, REDLOCK_OK);
    assert_is(drive_release(world_loop, waiter->lease, released), REDLOCK_OK);
}

WORLD_TEST(without_the_permission_a_real_server_is_asked_by_the_script) {
    const char *command = real_command();
    char denied[32];
    if (!command) {
        print_message("the redis-server of this machine has neither DELEX (Redis 8.4) nor DELIFEQ (Valkey 9.0)\n");
        skip();
    }
    snprintf(denied, sizeof denied, "-%s", command);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(
            server_ask(&world_servers.at[i], "ACL", "SETUSER", "u", "on", ">pw", "~*", "&*", "+@all", denied), "OK");
    }
    redlock_manager *manager = world_manager_as("u:pw@");
    assert_is(release(manager, REDLOCK_ORDER_NONE)->code, REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    assert_contains(world_log.text, "NOPERM");
    assert_is(release(manager, REDLOCK_ORDER_NONE)->code, REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}
