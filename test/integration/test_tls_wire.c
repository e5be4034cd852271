/* TLS on a bad wire: connections that end at any byte, records in pieces and records too many for
 * one turn, new keys in between; and FAILED against UNKNOWN (R4). */
#include <signal.h>

#include "tls_kit.h"

struct awaited {
    struct tls_front *front;
    redlock_manager *manager;
    size_t held;
    int count;
};

static enum tls_front_end reset_or_close(long long n) {
    return n % 2 ? TLS_FRONT_RST : TLS_FRONT_FIN;
}

static bool has_ended_a_try(void *data) {
    const struct awaited *awaited = data;
    return strcmp(world_node_info(awaited->manager, 0).error, "connecting") != 0;
}

/* The handshake ends after so many bytes. The node says so, and comes back. */
static void cut_handshake(struct tls_front *front, enum tls_front_way way, long long bytes) {
    const char *uri = tls_front_uri(front);
    const redlock_tls_options tls = kit_tls();
    const int handshakes = tls_front_seen(front)->handshakes;
    redlock_manager_options options = kit_options(&uri, 1, &tls);
    tls_front_cut_after(front, way, bytes, reset_or_close(bytes));
    redlock_manager *manager = world_manager_at_once(&options);
    struct awaited awaited = {.front = front, .manager = manager};
    assert_true(drive_until(world_loop, has_ended_a_try, &awaited, DRIVE_TIMEOUT_MS));
    if (tls_front_seen(front)->handshakes == handshakes) {
        kit_expect(manager, REDLOCK_NODE_WAITING, "in the TLS handshake");
    }
    kit_reconnected(manager, 1);
    world_close(manager);
}

TESTS_WITH(kit_start, world_end);

KIT_TEST(the_connection_ends_in_the_handshake) {
    for (int tls12 = 0; tls12 < 2; tls12++) {
        const struct tls_front_options options = {.target_port = world_servers.at[0].port,
                                                  .cert_file = pki_file("node.pem"),
                                                  .key_file = pki_file("node.key"),
                                                  .tls12 = tls12};
        struct tls_front *front = kit_front_with(&options);
        for (int way = TLS_FRONT_REQUESTS; way <= TLS_FRONT_REPLIES; way++) {
            /* No handshake is shorter than this, either way. */
            const long long most = way == TLS_FRONT_REQUESTS ? 200 : 600;
            for (long long bytes = 0; bytes < most; bytes += 1 + most / 40) {
                cut_handshake(front, (enum tls_front_way)way, bytes);
            }
        }
    }
}

KIT_TEST(a_silent_handshake_ends_by_its_timeout) {
    struct tls_front *front = kit_front(0, "node.pem");
    struct proxy *proxy = world_proxy(atoi(strchr(tls_front_name(front), ':') + 1));
    char uri[64];
    (void)snprintf(uri, sizeof uri, "rediss://%s", proxy_name(proxy));
    proxy_hold(proxy, PROXY_REPLIES, true);
    redlock_manager *manager = kit_brisk_manager(uri, NULL);
    kit_expect(manager, REDLOCK_NODE_WAITING, "is this a TLS port?");
    assert_is(drive_acquire(world_loop, manager, "silent", TIMES(60000, 0), outcome), REDLOCK_ERR_NO_QUORUM);
    assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_FAILED);
    proxy_hold(proxy, PROXY_REPLIES, false);
    kit_reconnected(manager, 1);
    kit_cycle(manager, "silent");
}

/* One time for both handshakes. That of TLS 1.3 takes a round trip and the node's own two, so that
 * neither is too late by itself. TLS 1.2 takes two, and is. */
KIT_TEST(a_slow_handshake_ends_by_the_same_timeout) {
    static const struct {
        int delay_ms;
        const char *words;
    } cases[] = {{800, "no answer to the handshake within 2000 ms"},
                 {1010, "the TLS handshake was not complete within 2000 ms"}};
    const redlock_tls_options tls = kit_tls();
    for (int tls12 = 0; tls12 < 2; tls12++) {
        const struct tls_front_options front_options = {.target_port = world_servers.at[0].port,
                                                        .cert_file = pki_file("node.pem"),
                                                        .key_file = pki_file("node.key"),
                                                        .tls12 = tls12};
        const char *name = tls_front_name(kit_front_with(&front_options));
        struct proxy *proxy = world_proxy(atoi(strchr(name, ':') + 1));
        char text[64];
        const char *uri = text;
        (void)snprintf(text, sizeof text, "rediss://%s", proxy_name(proxy));
        redlock_manager_options options = kit_options(&uri, 1, &tls);
        options.connect_timeout_ms = 2000;
        proxy_delay(proxy, PROXY_REPLIES, cases[tls12].delay_ms);
        redlock_manager *manager = world_manager_with(&options);
        kit_expect(manager, REDLOCK_NODE_WAITING, cases[tls12].words);
        proxy_delay(proxy, PROXY_REPLIES, 0);
        kit_reconnected(manager, 1);
    }
}

/* Every piece is a part of a record: in the handshake, and afterwards. */
KIT_TEST(a_wire_of_single_bytes_works) {
    struct tls_front *front = kit_front(0, "node.pem");
    struct proxy *proxy = world_proxy(atoi(strchr(tls_front_name(front), ':') + 1));
    char uri[64];
    (void)snprintf(uri, sizeof uri, "rediss://%s", proxy_name(proxy));
    proxy_trickle(proxy, PROXY_REQUESTS, true);
    proxy_trickle(proxy, PROXY_REPLIES, true);
    redlock_manager *manager = kit_manager(uri, NULL);
    for (int i = 0; i < 5; i++) {
        kit_cycle(manager, "trickle");
    }
    assert_int_equal(world_node_info(manager, 0).connects, 1);
}

/* Encrypted bytes of one acquire; the key stays until the test's end. */
static void measure(struct tls_front *front, redlock_manager *manager, long long bytes[2]) {
    const struct tls_front_seen before = *tls_front_seen(front);
    redlock_lease *lease = world_acquire(manager, "byte", 600000);
    for (int way = 0; way < 2; way++) {
        bytes[way] = tls_front_seen(front)->bytes[way] - before.bytes[way];
        assert_in_range(bytes[way], 20, 400);
    }
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

static bool owes_nothing(void *data) {
    return world_statistics(data).releases_owed == 0;
}

/* An acquire on a connection that ends after so many bytes of its record, or of its answer's. The
 * node may have it: UNKNOWN. Whether it has it or not, nothing is left of it. */
static void cut_acquire(struct tls_front *front, redlock_manager *manager, enum tls_front_way way, long long bytes) {
    struct outcome outcome = {0};
    const uint64_t connects = world_node_info(manager, 0).connects;
    tls_front_cut_after(front, way, bytes, reset_or_close(bytes));
    assert_is(drive_acquire(world_loop, manager, "byte", TIMES(600000, 0), &outcome), REDLOCK_ERR_NO_QUORUM);
    if (outcome_vote(&outcome, 0) != REDLOCK_VOTE_UNKNOWN) {
        fail_msg("cut at byte %lld: %s", bytes, outcome.message);
    }
    kit_reconnected(manager, connects + 1);
    assert_true(drive_until(world_loop, owes_nothing, manager, DRIVE_TIMEOUT_MS));
    if (!world_wait_without_key("byte", DRIVE_TIMEOUT_MS)) {
        fail_msg("cut at byte %lld: the key stays", bytes);
    }
    outcome_clear(&outcome);
}

KIT_TEST(a_cut_at_any_byte_of_a_record_is_unknown) {
    struct tls_front *front = kit_front(0, "node.pem");
    redlock_manager *manager = kit_manager(tls_front_uri(front), NULL);
    long long whole[2];
    measure(front, manager, whole);
    for (int way = TLS_FRONT_REQUESTS; way <= TLS_FRONT_REPLIES; way++) {
        /* Each connection is lost at once. After some time of life it counts as no failed try, so
         * a new manager keeps the delays short. */
        for (long long bytes = 0; bytes < whole[way]; bytes++) {
            cut_acquire(front, manager, (enum tls_front_way)way, bytes);
            world_close(manager);
            manager = kit_manager(tls_front_uri(front), NULL);
        }
    }
}

static bool is_held(void *data) {
    const struct awaited *awaited = data;
    return tls_front_seen(awaited->front)->held >= awaited->held;
}

/* The whole SET arrives, and runs. */
KIT_TEST(a_set_that_arrived_is_unknown_and_undone) {
    static const enum tls_front_end ends[] = {TLS_FRONT_NOTIFY, TLS_FRONT_FIN, TLS_FRONT_RST};
    struct tls_front *front = kit_front(0, "node.pem");
    redlock_manager *manager = kit_manager(tls_front_uri(front), NULL);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        outcome = world_outcome();
        tls_front_hold(front, true);
        assert_is(redlock_acquire(manager, "set", TIMES(600000, 0), NULL, outcome_collect, outcome), REDLOCK_OK);
        assert_true(world_wait_with_key("set", 1, DRIVE_TIMEOUT_MS));
        tls_front_cut_now(front, ends[i]);
        tls_front_hold(front, false);
        assert_true(outcome_wait(world_loop, outcome));
        assert_is(outcome->code, REDLOCK_ERR_NO_QUORUM);
        assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_UNKNOWN);
        assert_true(world_wait_without_key("set", DRIVE_TIMEOUT_MS));
    }
}

/* Nothing was encrypted, so nothing can have arrived. */
KIT_TEST(what_waited_for_the_handshake_is_failed) {
    struct tls_front *front = kit_front(0, "node.pem");
    const char *uri = tls_front_uri(front);
    const redlock_tls_options tls = kit_tls();
    redlock_manager_options options = kit_options(&uri, 1, &tls);
    tls_front_cut_after(front, TLS_FRONT_REPLIES, 100, TLS_FRONT_RST);
    redlock_manager *manager = world_manager_at_once(&options);
    redlock_acquire_options acquire = world_acquire_options(600000, 0);
    assert_is(redlock_acquire(manager, "early", &acquire, NULL, outcome_collect, outcome), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, outcome));
    assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_FAILED);
    assert_int_equal(world_statistics(manager).releases_owed, 0);
}

#define MANY      4000
#define LONG_NAME 1000 /* bytes: as much as ten times as many requests, which take long to end */

struct tally {
    int failed, unknown, other, ended;
};

static void count_vote(const redlock_result *result, void *data) {
    struct tally *tally = data;
    redlock_vote vote = {.size = sizeof vote};
    tally->ended++;
    if (redlock_result_vote(result, 0, &vote) != REDLOCK_OK) {
        support_fatal("a result without a vote");
    }
    tally->failed += vote.kind == REDLOCK_VOTE_FAILED;
    tally->unknown += vote.kind == REDLOCK_VOTE_UNKNOWN;
    tally->other += vote.kind != REDLOCK_VOTE_FAILED && vote.kind != REDLOCK_VOTE_UNKNOWN;
}

static bool all_have_ended(void *data) {
    const struct tally *tally = data;
    return tally->ended == MANY;
}

/*
 * More requests than the kernel takes for a node that does not read. Those that were not encrypted
 * are FAILED: no release is sent for them, so a key would stay if one of them arrived. The node
 * changes its keys meanwhile, which the client answers behind what it has encrypted.
 */
KIT_TEST(what_was_not_encrypted_never_arrives) {
    const struct tls_front_options options = {.target_port = world_servers.at[0].port,
                                              .cert_file = pki_file("node.pem"),
                                              .key_file = pki_file("node.key"),
                                              .small_window = true};
    struct tls_front *front = kit_front_with(&options);
    const char *uri = tls_front_uri(front);
    const redlock_tls_options tls = kit_tls();
    redlock_manager_options brisk = kit_options(&uri, 1, &tls);
    brisk.node_timeout_ms = BRISK_MS;
    redlock_manager *manager = world_manager_with(&brisk);
    redlock_acquire_options acquire = world_acquire_options(600000, 0);
    struct tally tally = {0};
    /* The first acquire on a connection may be sent twice. */
    assert_is(drive_release(world_loop, world_acquire(manager, "first", 600000), world_outcome()), REDLOCK_OK);
    assert_string_equal(server_ask(&world_servers.at[0], "CONFIG", "RESETSTAT"), "OK");
    tls_front_deafen(front, true);
    for (int i = 0; i < MANY; i++) {
        char resource[LONG_NAME + 1];
        (void)snprintf(resource, sizeof resource, "%0*d", LONG_NAME, i);
        assert_is(redlock_acquire(manager, resource, &acquire, NULL, count_vote, &tally), REDLOCK_OK);
    }
    drive_for(world_loop, 5);
    tls_front_update_keys(front);
    assert_true(drive_until(world_loop, all_have_ended, &tally, DRIVE_TIMEOUT_MS));
    tls_front_deafen(front, false);
    assert_true(tally.failed > 0 && tally.unknown > 0);
    assert_int_equal(tally.other, 0);
    assert_true(drive_until(world_loop, owes_nothing, manager, 3 * DRIVE_TIMEOUT_MS));
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    assert_int_equal(world_statistics(manager).releases_dropped, 0);
    const long long arrived = world_calls(&world_servers.at[0], "set");
    assert_true(arrived <= tally.unknown);
    /* Of a node that is silent for the stall limit, as on a slow machine, the connection is reset:
     * then what was encrypted may be lost, too. */
    assert_true(arrived > 0 || world_node_info(manager, 0).connects > 1);
}

static void count_ok(const redlock_result *result, void *data) {
    struct awaited *awaited = data;
    awaited->count += redlock_result_code(result) == REDLOCK_OK ? 1 : -1000000;
}

static bool all_are_ok(void *data) {
    const struct awaited *awaited = data;
    return awaited->count == (int)awaited->held;
}

static void ask(struct awaited *awaited, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_is(redlock_inspect(awaited->manager, "turn", count_ok, awaited), REDLOCK_OK);
    }
}

/* All replies leave at once, in records of this size. The last ones wake no poll: they are in the
 * client already, encrypted or decrypted. */
static void answer_at_once(struct awaited *awaited, size_t replies, size_t reply_size, size_t record_size) {
    tls_front_record_size(awaited->front, record_size);
    tls_front_hold(awaited->front, true);
    ask(awaited, replies);
    awaited->held = replies * reply_size;
    assert_true(drive_until(world_loop, is_held, awaited, DRIVE_TIMEOUT_MS));
    assert_int_equal(tls_front_seen(awaited->front)->held, replies * reply_size);
    awaited->count = 0;
    awaited->held = replies;
    tls_front_hold(awaited->front, false);
    if (!drive_until(world_loop, all_are_ok, awaited, DRIVE_TIMEOUT_MS)) {
        fail_msg("%d of %zu replies came in records of %zu bytes", awaited->count, replies, record_size);
    }
}

KIT_TEST(more_replies_than_a_turn_reads) {
    static const struct {
        size_t bytes, record_size;
    } cases[] = {
        {20000, 1},      {300000, 100},   {600000, 4096},  {600000, 16383},
        {600000, 16384}, {262144, 16384}, {270000, 16384}, {100, 16384},
    };
    struct tls_front *front = kit_front(0, "node.pem");
    const char *uri = tls_front_uri(front);
    const redlock_tls_options tls = kit_tls();
    redlock_manager_options options = kit_options(&uri, 1, &tls);
    options.node_timeout_ms = 3 * DRIVE_TIMEOUT_MS; /* a reply that never comes is not read late */
    struct awaited awaited = {.front = front, .manager = world_manager_with(&options), .held = 1};
    (void)world_acquire(awaited.manager, "turn", 600000);
    tls_front_hold(front, true);
    ask(&awaited, 1);
    assert_true(drive_until(world_loop, is_held, &awaited, DRIVE_TIMEOUT_MS));
    const size_t reply_size = tls_front_seen(front)->held;
    tls_front_hold(front, false);
    assert_true(drive_until(world_loop, all_are_ok, &awaited, DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        answer_at_once(&awaited, 1 + cases[i].bytes / reply_size, reply_size, cases[i].record_size);
    }
    assert_int_equal(world_node_info(awaited.manager, 0).connects, 1);
}

/* The first write after these ends is a broken pipe, whose signal would end this program. */
KIT_TEST(a_broken_pipe_raises_no_signal) {
    struct tls_front *front = kit_front(0, "node.pem");
    redlock_manager *manager = kit_manager(tls_front_uri(front), NULL);
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    for (uint64_t i = 1; i <= 5; i++) {
        outcome = world_outcome();
        tls_front_cut_now(front, TLS_FRONT_FIN_RST);
        assert_is(redlock_acquire(manager, "pipe", TIMES(60000, 0), NULL, outcome_collect, outcome), REDLOCK_OK);
        assert_true(outcome_wait(world_loop, outcome));
        kit_reconnected(manager, i + 1);
        kit_cycle(manager, "pipe");
    }
}
