/* Names, keys and bytes: what is sent, which names are accepted, which input is refused, sockets
 * and IPv6. */
#include <ctype.h>

#include "world.h"

TESTS_WITH(world_three, world_end);

MANAGER_TEST(the_key_holds_the_token_as_a_plain_string) {
    redlock_lease *lease = world_acquire(manager, "plain", 60000);
    assert_true(world_wait_with_key("plain", 3, DRIVE_TIMEOUT_MS));
    const char *token = redlock_lease_token(lease);
    assert_int_equal(strlen(token), 32);
    assert_in_range(token[0], 'g', 'v');
    for (const char *c = token + 1; *c; c++) {
        assert_true(isxdigit((unsigned char)*c));
    }
    assert_string_equal(redlock_lease_resource(lease), "plain");
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(server_ask(&world_servers.at[i], "GET", "plain"), token);
        assert_string_equal(server_ask(&world_servers.at[i], "TYPE", "plain"), "string");
        assert_in_range(server_pttl_ms(&world_servers.at[i], "plain"), 1, 60000);
        assert_int_equal(server_key_count(&world_servers.at[i]), 1); /* no other key */
        /* Our lock excludes another client. */
        assert_string_equal(server_ask(&world_servers.at[i], "SET", "plain", "other", "NX", "PX", "1000"), "(nil)");
    }
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

MANAGER_TEST(another_clients_lock_excludes_ours) {
    servers_say(&world_servers, 0, 2, "OK", "SET", "theirs", "x", "NX", "PX", "60000");
    assert_is(drive_acquire(world_loop, manager, "theirs", NULL, outcome), REDLOCK_ERR_CONTENDED);
    assert_true(world_wait_with_key("theirs", 2, DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < 2; i++) { /* how that client releases */
        assert_string_equal(server_ask(&world_servers.at[i], "EVAL",
                                       "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) "
                                       "else return 0 end",
                                       "1", "theirs", "x"),
                            "1");
    }
    redlock_lease *lease = world_acquire(manager, "theirs", 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

MANAGER_TEST(each_attempt_and_lease_has_a_token_of_its_own) {
    char tokens[50][REDLOCK_TOKEN_SIZE_MAX + 1];
    for (int i = 0; i < 50; i++) {
        redlock_lease *lease = world_acquire(manager, "again", 60000);
        strcpy(tokens[i], redlock_lease_token(lease));
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(tokens[i], tokens[k]);
        }
        assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    }
}

MANAGER_TEST(odd_names_are_keys_like_any_other) {
    char longest[REDLOCK_RESOURCE_SIZE_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *names[] = {" ",
                           "with spaces in it",
                           "a\nb\r\nc",
                           "\r\n$3\r\nDEL\r\n",
                           "k\xc3\xa4se \xe2\x82\xac \xf0\x9f\x94\x92",
                           "\xff\xfe\x80",
                           "*",
                           "{hash}tag",
                           "a:b:c",
                           "%s%n%d",
                           longest};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        redlock_lease *lease = world_acquire(manager, names[i], 60000);
        assert_string_equal(redlock_lease_resource(lease), names[i]);
        assert_true(world_wait_with_key(names[i], 3, DRIVE_TIMEOUT_MS));
        assert_int_equal(server_key_count(&world_servers.at[0]), 1);
        assert_is(drive_acquire(world_loop, manager, names[i], NULL, outcome), REDLOCK_ERR_CONTENDED);
        assert_string_equal(redlock_result_resource(outcome->copy), names[i]);
        for (const char *c = outcome->message; *c; c++) {
            assert_true((unsigned char)*c >= 0x20); /* one line */
        }
        assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
        world_release_all(lease, NULL);
    }
}

WORLD_TEST(a_key_prefix_comes_before_the_name) {
    redlock_manager_options options = world_options();
    options.key_prefix = "app:lock:";
    redlock_manager *manager = world_manager_with(&options);
    redlock_lease *lease = world_acquire(manager, "job", 60000);
    assert_true(world_wait_with_key("app:lock:job", 3, DRIVE_TIMEOUT_MS));
    assert_int_equal(servers_with_key(&world_servers, "job"), 0);
    assert_string_equal(redlock_lease_resource(lease), "job");
    assert_is(drive_inspect(world_loop, manager, "job", outcome), REDLOCK_OK);
    assert_true(outcome_votes(outcome, REDLOCK_VOTE_GRANTED) >= 2);
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
    world_release_all(lease, NULL);
    char resource[REDLOCK_RESOURCE_SIZE_MAX + 1]; /* fits alone, not with the prefix */
    memset(resource, 'x', sizeof resource - 1);
    resource[sizeof resource - 1] = '\0';
    assert_is(redlock_acquire(manager, resource, NULL, NULL, outcome_collect, outcome), REDLOCK_ERR_INVALID);
    resource[REDLOCK_RESOURCE_SIZE_MAX - strlen("app:lock:")] = '\0';
    lease = world_acquire(manager, resource, 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

/* Any text does, and none. A program that was built against an older header cannot give one. */
WORLD_TEST(a_token_says_who_holds_the_lock) {
    static const char *const holders[] = {NULL,
                                          "",
                                          "!",
                                          "web-3:4711",
                                          "a@b",
                                          "\"'`$*%s\\~",
                                          "0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof holders / sizeof *holders; i++) {
        char holder[REDLOCK_HOLDER_SIZE_MAX + 1] = "";
        const char *wanted = holders[i] ? holders[i] : "";
        redlock_manager_options options = world_options();
        strcpy(holder, wanted);
        options.holder = holders[i] ? holder : NULL;
        redlock_manager *manager = world_manager_with(&options);
        memset(holder, 'x', sizeof holder - 1); /* it was copied */
        redlock_lease *lease = world_acquire(manager, "named", 60000);
        const char *token = redlock_lease_token(lease);
        assert_string_equal(redlock_token_holder(token), wanted);
        assert_int_equal(strlen(token), 32 + (wanted[0] ? 1 + strlen(wanted) : 0));
        assert_true(world_wait_with_key("named", 3, DRIVE_TIMEOUT_MS));
        assert_string_equal(server_ask(&world_servers.at[0], "GET", "named"), token);
        assert_is(drive_inspect(world_loop, manager, "named", world_outcome()), REDLOCK_OK);
        assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
        assert_true(world_wait_without_key("named", DRIVE_TIMEOUT_MS));
        world_close(manager);
    }
    redlock_manager_options old = world_options();
    old.size = offsetof(redlock_manager_options, holder);
    old.holder = "must not be read";
    redlock_manager *manager = world_manager_with(&old);
    redlock_lease *lease = world_acquire(manager, "named", 60000);
    assert_int_equal(strlen(redlock_lease_token(lease)), 32);
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

WORLD_TEST(over_unix_sockets) {
    const char *uris[3];
    for (size_t i = 0; i < 3; i++) {
        uris[i] = world_servers.at[i].socket_uri;
    }
    redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
    redlock_lease *lease = world_acquire(manager, "socket", 60000);
    assert_true(world_wait_with_key("socket", 3, DRIVE_TIMEOUT_MS));
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    redlock_node_info info = world_node_info(manager, 0);
    assert_contains(info.name, world_servers.at[0].socket);
}

WORLD_TEST(a_database_of_the_uri_is_selected) {
    char texts[3][160];
    const char *uris[3] = {texts[0], texts[1], texts[2]};
    snprintf(texts[0], sizeof texts[0], "%s?db=5", world_servers.at[0].socket_uri);
    for (size_t i = 1; i < 3; i++) {
        snprintf(texts[i], sizeof texts[i], "redis://127.0.0.1:%d/5", world_servers.at[i].port);
    }
    redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
    redlock_lease *lease = world_acquire(manager, "five", 60000);
    assert_int_equal(servers_with_key(&world_servers, "five"), 0);
    for (size_t i = 0; i < 3; i++) {
        struct raw raw;
        assert_true(raw_open_tcp(&raw, "127.0.0.1", world_servers.at[i].port));
        assert_string_equal(raw_ask(&raw, "SELECT", "5"), "OK");
        for (int tries = 0; tries < 1000 && strcmp(raw_ask(&raw, "EXISTS", "five"), "1") != 0; tries++) {
            drive_for(world_loop, 5);
        }
        assert_string_equal(raw_ask(&raw, "GET", "five"), redlock_lease_token(lease));
        raw_close(&raw);
    }
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

/* Bare host:port, a name, and IPv6 where there is one. */
WORLD_TEST(other_forms_of_addresses) {
    static struct servers six;
    char texts[3][64];
    snprintf(texts[0], sizeof texts[0], "127.0.0.1:%d", world_servers.at[0].port);
    snprintf(texts[1], sizeof texts[1], "redis://localhost:%d", world_servers.at[1].port);
    struct raw probe;
    six.count = 0;
    bool has_six = false;
    char *if_inet6 = support_read_file("/proc/net/if_inet6");
    if (if_inet6 && strstr(if_inet6, "00000000000000000000000000000001 ")) {
        struct server *server = servers_add(&six, &(struct server_options){.ipv6 = true});
        has_six = raw_open_tcp(&probe, "::1", server->port);
        if (has_six) {
            raw_close(&probe);
        }
    }
    free(if_inet6);
    if (has_six) {
        snprintf(texts[2], sizeof texts[2], "redis://[::1]:%d", six.at[0].port);
    } else {
        print_message("no IPv6 loopback here: the IPv6 address is not tested\n");
    }
    const char *uris[3] = {texts[0], texts[1], has_six ? texts[2] : world_servers.uris[2]};
    redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    redlock_lease *lease = world_acquire(manager, "forms", 60000);
    assert_true(world_wait_with_key("forms", has_six ? 2 : 3, DRIVE_TIMEOUT_MS));
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    world_close(manager);
    servers_stop(&six);
}
