/* What a caller can read: messages, votes, copies, node information, logs without secrets. */
#include <ctype.h>

#include "world.h"

/* A message for people: one line that begins with a letter, ends with a full stop and names its
 * subject. */
static void assert_sentence(const struct outcome *outcome, const char *about) {
    const char *text = outcome->message;
    size_t size = strlen(text);
    if (size < 20 || !isalpha((unsigned char)text[0]) || text[size - 1] != '.' || strchr(text, '\n') ||
        (about && !strstr(text, about))) {
        fail_msg("not a sentence about %s: %s", about ? about : "it", text);
    }
}

static void says(const struct outcome *outcome, const char *part) {
    assert_contains(outcome->message, part);
}

TESTS_WITH(world_five, world_end);

WORLD_TEST(each_result_has_a_sentence) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    redlock_acquire_options options = world_acquire_options(60000, 0);
    assert_is(drive_acquire(world_loop, manager, "tale", &options, outcome), REDLOCK_OK);
    assert_sentence(outcome, "'tale'");
    redlock_lease *lease = outcome->lease;
    assert_is(drive_acquire(world_loop, manager, "tale", &options, outcome), REDLOCK_ERR_CONTENDED);
    assert_sentence(outcome, "'tale'");
    says(outcome, "held by others");
    says(outcome, "3 are needed");
    options.ttl_ms = 2;
    assert_is(drive_acquire(world_loop, manager, "blink", &options, outcome), REDLOCK_ERR_TOO_SLOW);
    assert_sentence(outcome, "'blink'");
    says(outcome, "longer ttl");
    servers_each(&world_servers, 0, 3, server_pause);
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_sentence(outcome, "'tale'");
    for (size_t i = 0; i < 3; i++) {
        says(outcome, world_servers.at[i].name);
    }
    says(outcome, "1000 ms"); /* BRISK_MS: the wait */
    servers_each(&world_servers, 0, 3, server_resume);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 5));
    servers_ask(&world_servers, 0, 5, "DEL", "tale");
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    assert_sentence(outcome, "'tale'");
    says(outcome, "missing");
    redlock_request *request;
    outcome_clear(outcome);
    assert_is(redlock_acquire(manager, "given-up", NULL, &request, outcome_collect, outcome), REDLOCK_OK);
    redlock_request_cancel(request);
    assert_true(outcome_wait(world_loop, outcome));
    assert_is(outcome->code, REDLOCK_ERR_CANCELLED);
    assert_sentence(outcome, "'given-up'");
    /* Like snprintf: the length that it would have had. */
    char small[12];
    size_t whole = strlen(outcome->message);
    assert_int_equal(redlock_result_message(outcome->copy, NULL, 0), whole);
    assert_int_equal(redlock_result_message(outcome->copy, small, sizeof small), whole);
    assert_int_equal(strlen(small), sizeof small - 1);
    assert_memory_equal(small, outcome->message, sizeof small - 1);
}

WORLD_TEST(connect_reports_which_nodes_are_ready) {
    const char *uris[5];
    for (size_t i = 0; i < 5; i++) {
        uris[i] = i == 1 ? world_closed_uri() : world_servers.uris[i];
    }
    redlock_manager *manager = world_manager(uris, 5, PATIENT_MS);
    assert_is(drive_connect(world_loop, manager, outcome), REDLOCK_OK);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_GRANTED), 4);
    assert_is(outcome_vote(outcome, 1), REDLOCK_VOTE_FAILED);
    assert_contains(outcome_vote_error(outcome, 1), "refused");
    assert_string_equal(redlock_result_resource(outcome->copy), "");
    for (size_t i = 2; i < 4; i++) {
        uris[i] = world_closed_uri();
    }
    redlock_manager *fewer = world_manager(uris, 5, PATIENT_MS);
    assert_is(drive_connect(world_loop, fewer, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_sentence(outcome, strrchr(uris[1], '/') + 1);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), 3);
    redlock_node_info info = {.size = sizeof info};
    assert_is(redlock_manager_node(fewer, 1, &info), REDLOCK_OK);
    assert_contains(info.error, "refused");
    assert_string_equal(info.name, strrchr(uris[1], '/') + 1);
    assert_int_equal(info.uptime_s, -1);
    assert_int_equal(info.connects, 0);
    assert_is(redlock_manager_node(fewer, 0, &info), REDLOCK_OK);
    assert_is(info.state, REDLOCK_NODE_READY);
    assert_string_equal(info.error, "");
    assert_string_equal(info.role, "master");
    assert_true(info.uptime_s >= 0);
    assert_int_equal(info.connects, 1);
}

/* A program built against an older, smaller struct: no byte past its size is written. */
MANAGER_TEST(older_structs_are_filled_as_far_as_they_go) {
    redlock_lease *lease = world_acquire(manager, "old", 60000);
    union {
        redlock_statistics statistics;
        redlock_node_info info;
        redlock_vote vote;
        unsigned char bytes[512];
    } old;
    memset(&old, 0xa5, sizeof old);
    old.statistics.size = offsetof(redlock_statistics, acquired);
    assert_is(redlock_manager_statistics(manager, &old.statistics), REDLOCK_OK);
    assert_int_equal(old.statistics.acquires, 1);
    for (size_t i = offsetof(redlock_statistics, acquired); i < sizeof old; i++) {
        assert_int_equal(old.bytes[i], 0xa5);
    }
    memset(&old, 0xa5, sizeof old);
    old.info.size = offsetof(redlock_node_info, version);
    assert_is(redlock_manager_node(manager, 0, &old.info), REDLOCK_OK);
    assert_string_equal(old.info.name, world_servers.at[0].name);
    for (size_t i = offsetof(redlock_node_info, version); i < sizeof old; i++) {
        assert_int_equal(old.bytes[i], 0xa5);
    }
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    memset(&old, 0xa5, sizeof old);
    old.vote.size = offsetof(redlock_vote, error);
    assert_is(redlock_result_vote(outcome->copy, 0, &old.vote), REDLOCK_OK);
    for (size_t i = offsetof(redlock_vote, error); i < sizeof old; i++) {
        assert_int_equal(old.bytes[i], 0xa5);
    }
    redlock_vote none = {.size = 0}, all = {.size = sizeof all};
    assert_is(redlock_result_vote(outcome->copy, 0, &none), REDLOCK_ERR_INVALID);
    assert_is(redlock_result_vote(outcome->copy, 5, &all), REDLOCK_ERR_INVALID);
    /* An acquire option struct from before wait_timeout_ms was known: one try. */
    redlock_acquire_options options = world_acquire_options(60000, 30000);
    options.size = offsetof(redlock_acquire_options, wait_timeout_ms);
    servers_ask(&world_servers, 0, 5, "SET", "old", "foreign");
    assert_is(drive_acquire(world_loop, manager, "old", &options, outcome), REDLOCK_ERR_CONTENDED);
    assert_int_equal(outcome->attempts, 1);
}

MANAGER_TEST(the_votes_of_a_result_are_the_nodes) {
    server_ask(&world_servers.at[3], "SET", "votes", "foreign");
    int64_t before_ns = support_now_ns();
    assert_is(drive_acquire(world_loop, manager, "votes", TIMES(60000, 0), outcome), REDLOCK_OK);
    int64_t passed_us = (support_now_ns() - before_ns) / 1000;
    assert_int_equal(redlock_result_vote_count(outcome->copy), 5);
    size_t granted = 0;
    for (size_t i = 0; i < 5; i++) {
        redlock_vote vote = {.size = sizeof vote};
        assert_is(redlock_result_vote(outcome->copy, i, &vote), REDLOCK_OK);
        assert_string_equal(vote.node, world_servers.at[i].name);
        assert_string_equal(vote.holder, "");
        granted += vote.kind == REDLOCK_VOTE_GRANTED;
        assert_true(vote.kind == (i == 3 ? REDLOCK_VOTE_DENIED : REDLOCK_VOTE_GRANTED) ||
                    vote.kind == REDLOCK_VOTE_PENDING);
        if (vote.kind == REDLOCK_VOTE_PENDING) {
            assert_int_equal(vote.latency_us, -1);
        } else {
            assert_in_range(vote.latency_us, 0, passed_us);
        }
    }
    assert_true(granted >= 3);
    assert_is(drive_release(world_loop, outcome->lease, outcome), REDLOCK_OK);
}

/* At the level DEBUG, through contention, loss of nodes, retries and their return. */
WORLD_TEST(no_token_reaches_a_log_or_a_message) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    char tokens[4][REDLOCK_TOKEN_SIZE_MAX + 1];
    for (int i = 0; i < 4; i++) {
        redlock_lease *lease = world_acquire(manager, "quiet", 60000);
        strcpy(tokens[i], redlock_lease_token(lease));
        assert_is(drive_acquire(world_loop, manager, "quiet", NULL, outcome), REDLOCK_ERR_CONTENDED);
        assert_lacks(outcome->message, tokens[i]);
        server_kill(&world_servers.at[i]);
        drive_release(world_loop, lease, outcome);
        assert_lacks(outcome->message, tokens[i]);
        server_restart(&world_servers.at[i]);
        assert_true(drive_reconnected(world_loop, manager, (size_t)i, 2));
        assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    }
    assert_true(world_log.lines > 4);
    for (int i = 0; i < 4; i++) {
        assert_lacks(world_log.text, tokens[i]);
        assert_contains(world_log.text, world_servers.at[i].name);
    }
    for (const char *c = world_log.text; *c; c++) {
        assert_true(*c == '\n' || (unsigned char)*c >= 0x20);
    }
}
