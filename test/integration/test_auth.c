/* Nodes that may not vote or need a warning: wrong passwords, ACL users, replicas, one server
 * twice, a server that is full, failing, loading or evicting. */
#include <sys/stat.h>

#include "world.h"

#define PASSWORD "correct-horse-battery"
#define WRONG    "wr0ng-staple-guess"

static void assert_names_no_secret(const char *text) {
    assert_lacks(text, PASSWORD);
    assert_lacks(text, WRONG);
}

static int stop_servers(void **state) {
    int result = world_teardown(state);
    servers_stop(&world_servers);
    return result;
}

TESTS_WITH(world_none, world_end);
#define AUTH_TEST(name)                                                                                                \
    TEST_HAS(name, world_setup, stop_servers, NULL, (world_outcome()), UNUSED struct outcome *outcome)

AUTH_TEST(the_password_of_the_uri_is_used) {
    servers_start(&world_servers, 3, &(struct server_options){.password = PASSWORD});
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(manager, "secret-door", 60000);
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    strcpy(token, redlock_lease_token(lease));
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(world_node_info(manager, i).name, world_servers.at[i].name);
    }
    assert_true(world_log.lines > 0); /* at the level DEBUG */
    assert_names_no_secret(world_log.text);
    assert_lacks(world_log.text, token);
}

AUTH_TEST(a_wrong_password_is_named_but_not_shown) {
    servers_start(&world_servers, 3, &(struct server_options){.password = PASSWORD});
    for (int with_password = 0; with_password < 2; with_password++) {
        redlock_manager *manager = world_manager_as(with_password ? ":" WRONG "@" : "");
        outcome = world_outcome();
        assert_is(drive_acquire(world_loop, manager, "door", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
        assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), 3);
        for (size_t i = 0; i < 3; i++) {
            redlock_node_info info = world_node_info(manager, i);
            assert_is(info.state, REDLOCK_NODE_UNUSABLE);
            assert_contains(info.error, with_password ? "WRONGPASS" : "NOAUTH");
            assert_contains(outcome_vote_error(outcome, i), with_password ? "WRONGPASS" : "NOAUTH");
            assert_names_no_secret(info.error);
            assert_names_no_secret(info.name);
        }
        assert_names_no_secret(outcome->message);
        assert_names_no_secret(world_log.text);
        /* When the operator has set it right, the node votes. We need no restart. */
        servers_ask(&world_servers, 0, 3, "CONFIG", "SET", "requirepass", with_password ? WRONG : "");
        assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
        redlock_lease *lease = world_acquire(manager, "door", 60000);
        assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
        world_close(manager);
        servers_ask(&world_servers, 0, 3, "CONFIG", "SET", "requirepass", PASSWORD);
    }
}

#define LOCKER_RULES "~lock:* -@all +set +evalsha +eval +get +del +pexpire +pttl +type +ping +info +script|load"
#define LOCKER_MORE  " +client|id +client|setname +client|kill +auth +select"

/* With the fewest rights; and with even fewer, without CLIENT and SCRIPT, which help but are not
 * needed. */
AUTH_TEST(an_acl_user_with_few_rights) {
    static const char *const configs[] = {"user locker on >" PASSWORD " " LOCKER_RULES LOCKER_MORE "\n",
                                          "user locker on >" PASSWORD
                                          " ~lock:* -@all +set +evalsha +eval +get +del +pexpire +pttl +ping +info\n"};
    for (size_t c = 0; c < 2; c++) {
        servers_start(
            &world_servers, 3,
            &(struct server_options){.password = "admin-" PASSWORD, .config = configs[c], .no_default_user = true});
        redlock_manager *manager = world_manager_as("locker:" PASSWORD "@");
        outcome = world_outcome();
        redlock_lease *lease = world_acquire(manager, "lock:door", 60000);
        assert_true(world_wait_with_key("lock:door", 3, DRIVE_TIMEOUT_MS));
        assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
        world_release_all(lease, NULL);
        /* A key that the user may not touch. */
        assert_is(drive_acquire(world_loop, manager, "other", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
        assert_true(outcome_votes(outcome, REDLOCK_VOTE_FAILED) >= 2);
        assert_contains(outcome->message, "NOPERM");
        assert_names_no_secret(outcome->message);
        assert_names_no_secret(world_log.text);
        world_close(manager);
        servers_stop(&world_servers);
    }
}

AUTH_TEST(a_replica_does_not_vote) {
    servers_start(&world_servers, 3, NULL);
    char config[64];
    snprintf(config, sizeof config, "replicaof 127.0.0.1 %d\n", world_servers.at[0].port);
    struct server *replica = servers_add(&world_servers, &(struct server_options){.config = config});
    const char *uris[3] = {world_servers.uris[1], world_servers.uris[2], replica->uri};
    redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
    assert_is(world_node_info(manager, 2).state, REDLOCK_NODE_UNUSABLE);
    assert_contains(world_node_info(manager, 2).error, "replica");
    assert_contains(world_log.text, "replica");
    redlock_lease *lease = world_acquire(manager, "door", 60000);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_GRANTED), 0);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    /* Two primaries of three are a quorum; one is not. */
    server_ask(&world_servers.at[1], "REPLICAOF", "127.0.0.1", "1");
    int code = drive_acquire(world_loop, manager, "door", NULL, outcome);
    assert_is(code, REDLOCK_ERR_NO_QUORUM);
    assert_int_not_equal(outcome_vote(outcome, 0), REDLOCK_VOTE_GRANTED);
    /* After its promotion it may vote. */
    server_ask(&world_servers.at[1], "REPLICAOF", "NO", "ONE");
    server_ask(replica, "REPLICAOF", "NO", "ONE");
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    lease = world_acquire(manager, "door", 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

AUTH_TEST(the_same_server_twice_is_one_vote) {
    servers_start(&world_servers, 2, NULL);
    char again[64];
    snprintf(again, sizeof again, "redis://localhost:%d", world_servers.at[0].port);
    const char *uris[3] = {world_servers.uris[0], again, world_servers.uris[1]};
    redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_UNUSABLE, 1));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 2));
    size_t refused = world_node_info(manager, 0).state == REDLOCK_NODE_UNUSABLE ? 0 : 1;
    assert_contains(world_node_info(manager, refused).error, "same server");
    assert_contains(world_node_info(manager, refused).error, world_node_info(manager, 1 - refused).name);
    /* Two servers of three nodes: a quorum. */
    redlock_lease *lease = world_acquire(manager, "door", 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    server_kill(&world_servers.at[1]);
    assert_is(drive_acquire(world_loop, manager, "door", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_contains(outcome->message, "same server");
    world_close(manager);
    const char *socket_too[3] = {world_servers.uris[0], world_servers.at[0].socket_uri, world_closed_uri()};
    manager = world_manager(socket_too, 3, PATIENT_MS);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_UNUSABLE, 1));
    assert_is(drive_acquire(world_loop, manager, "door", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
}

struct tries {
    struct proxy *proxy;
    int count;
};

static bool has_tried(void *data) {
    const struct tries *tries = data;
    return proxy_connections(tries->proxy) >= tries->count;
}

/* Without a run_id, the marker tells. The first node comes later, takes the place of the second,
 * and keeps it, however often that tries again. */
AUTH_TEST(an_earlier_node_that_comes_later_takes_the_place) {
    servers_start(&world_servers, 2, NULL);
    struct server *twice = &world_servers.at[0];
    struct proxy *proxies[2] = {world_proxy(twice->port), world_proxy(twice->port)};
    char marker[128];
    assert_string_equal(server_ask(twice, "ACL", "SETUSER", "default", "-info"), "OK");
    proxy_refuse(proxies[0], true);
    const char *uris[3] = {proxy_uri(proxies[0]), proxy_uri(proxies[1]), world_servers.uris[1]};
    redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 2));
    assert_is(world_node_info(manager, 1).state, REDLOCK_NODE_READY);
    assert_int_equal(sscanf(server_ask(twice, "KEYS", "redlock:server:*"), "%127s", marker), 1);
    proxy_refuse(proxies[0], false);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_UNUSABLE, 1));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 2));
    assert_string_equal(server_ask(twice, "PEXPIRE", marker, "60000"), "1");
    struct tries tries = {proxies[1], proxy_connections(proxies[1]) + 2};
    assert_true(drive_until(world_loop, has_tried, &tries, DRIVE_TIMEOUT_MS));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_UNUSABLE, 1));
    assert_is(world_node_info(manager, 0).state, REDLOCK_NODE_READY);
    assert_int_equal(world_node_info(manager, 0).connects, 1);
    assert_contains(world_node_info(manager, 1).error, proxy_name(proxies[0]));
    /* Whoever finds it keeps it. */
    assert_true(strtoll(server_ask(twice, "PTTL", marker), NULL, 10) > 60000);
}

struct looks {
    redlock_manager *manager;
    const struct outcome *outcome;
    uint64_t splits;
};

static bool has_looked_or_ended(void *data) {
    const struct looks *looks = data;
    return looks->outcome->runs > 0 || world_statistics(looks->manager).splits >= looks->splits;
}

/* A waiter keeps the grants of two nodes and looks at the others now and then. Meanwhile another
 * address leads to the server of one of the two. That server's grant is one that it has already. */
AUTH_TEST(a_server_that_becomes_another_node_grants_a_waiter_once) {
    servers_start(&world_servers, 4, NULL);
    struct server *twice = &world_servers.at[0];
    struct proxy *proxy = world_proxy(twice->port);
    proxy_refuse(proxy, true);
    servers_say(&world_servers, 2, 4, "OK", "SET", "door", "somebody", "PX", "600000");
    const char *uris[5] = {proxy_uri(proxy), twice->uri, world_servers.uris[1], world_servers.uris[2],
                           world_servers.uris[3]};
    redlock_manager *manager = world_manager(uris, 5, PATIENT_MS);
    assert_is(redlock_acquire(manager, "door", TIMES(60000, REDLOCK_WAIT_FOREVER), NULL, outcome_collect, outcome),
              REDLOCK_OK);
    struct looks looks = {manager, outcome, 3};
    assert_true(drive_until(world_loop, has_looked_or_ended, &looks, DRIVE_TIMEOUT_MS));
    proxy_refuse(proxy, false);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_UNUSABLE, 1));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 4));
    assert_is(world_node_info(manager, 0).state, REDLOCK_NODE_READY);
    looks.splits = world_statistics(manager).splits + 3;
    assert_true(drive_until(world_loop, has_looked_or_ended, &looks, DRIVE_TIMEOUT_MS));
    if (outcome->runs != 0) {
        fail_msg("two servers of five nodes: %s", outcome->message);
    }
    assert_string_equal(server_ask(&world_servers.at[2], "DEL", "door"), "1");
    assert_true(outcome_wait(world_loop, outcome));
    assert_is(outcome->code, REDLOCK_OK);
    assert_is(drive_release(world_loop, outcome->lease, outcome), REDLOCK_OK);
}

AUTH_TEST(a_full_server_fails_with_its_own_words) {
    servers_start(&world_servers, 3, NULL);
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(manager, "before", 60000);
    servers_say(&world_servers, 0, 2, "OK", "CONFIG", "SET", "maxmemory", "1");
    assert_is(drive_acquire(world_loop, manager, "door", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_true(outcome_votes(outcome, REDLOCK_VOTE_FAILED) == 2);
    assert_contains(outcome->message, "OOM");
    /* Needs no memory. */
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
    world_release_all(lease, NULL);
    servers_ask(&world_servers, 0, 2, "CONFIG", "SET", "maxmemory", "0");
    lease = world_acquire(manager, "door", 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

static bool save_has_failed(void *data) {
    return strstr(server_ask(data, "INFO", "persistence"), "rdb_last_bgsave_status:err") != NULL;
}

AUTH_TEST(a_server_that_cannot_save_fails_with_its_own_words) {
    servers_start(&world_servers, 3, NULL);
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    for (size_t i = 0; i < 2; i++) {
        /* A directory in place of the dump: a rename onto it fails, also for root. */
        char path[128];
        snprintf(path, sizeof path, "%s/dump.rdb", world_servers.at[i].directory);
        assert_int_equal(mkdir(path, 0700), 0);
        strcat(path, "/x");
        support_write_file(path, "");
        server_ask(&world_servers.at[i], "CONFIG", "SET", "save", "3600 1000000");
        server_ask(&world_servers.at[i], "BGSAVE");
        assert_true(drive_until(world_loop, save_has_failed, &world_servers.at[i], DRIVE_TIMEOUT_MS));
    }
    assert_is(drive_acquire(world_loop, manager, "door", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), 2);
    assert_contains(outcome->message, "MISCONF");
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

AUTH_TEST(a_loading_server_fails_and_then_votes) {
    servers_start(
        &world_servers, 3,
        &(struct server_options){.append_only = true, .config = "loading-process-events-interval-bytes 1024\n"});
    struct server *slow = &world_servers.at[2];
    server_ask(slow, "EVAL", "for i=1,2000 do redis.call('SET','filler:'..i,string.rep('x',100)) end", "0");
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    server_kill(slow);
    server_kill(&world_servers.at[1]);
    char path[128];
    snprintf(path, sizeof path, "%s/redis.conf", slow->directory);
    char *config = support_read_file(path);
    char *slower = malloc(strlen(config) + 64);
    assert_non_null(slower);
    sprintf(slower, "%skey-load-delay 1500\n", config); /* three seconds in total */
    support_write_file(path, slower);
    free(slower);
    free(config);
    server_restart_without_waiting(slow);
    bool seen = false;
    int64_t deadline_ms = support_now_ms() + DRIVE_TIMEOUT_MS;
    while (!seen && support_now_ms() < deadline_ms) {
        assert_int_equal(drive_acquire(world_loop, manager, "door", NULL, outcome) == REDLOCK_OK, 0);
        seen = strstr(outcome->message, "LOADING") != NULL || strstr(outcome->message, "loading") != NULL;
        drive_for(world_loop, 20);
    }
    assert_true(seen);
    /* By itself, once it has loaded. */
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 2));
    redlock_lease *lease = world_acquire(manager, "door", 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

AUTH_TEST(an_evicting_policy_is_warned_of) {
    servers_start(&world_servers, 2, NULL);
    servers_add(&world_servers, &(struct server_options){.config = "maxmemory 100mb\nmaxmemory-policy allkeys-lru\n"});
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3)); /* it votes anyway */
    assert_contains(world_node_info(manager, 2).warning, "allkeys-lru");
    assert_string_equal(world_node_info(manager, 0).warning, "");
    assert_contains(world_log.text, "allkeys-lru");
    const char *version = world_node_info(manager, 0).version;
    assert_true(strncmp(version, "redis ", 6) == 0 || strncmp(version, "valkey ", 7) == 0);
    assert_string_equal(world_node_info(manager, 0).role, "master");
    redlock_lease *lease = world_acquire(manager, "door", 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}
