/* Results as people and programs read them: sentences, copies, votes, names. */
#include "result/result.h"
#include "test.h"

/* The votes are the last example's. */
static struct redlock_result example(enum redlock_result_of of, int code) {
    static struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    static const char *const nodes[] = {"a:1", "b:2", "c:3"};
    struct redlock_result result = {.code = code,
                                    .of = of,
                                    .resource = "job\n7",
                                    .attempts = 3,
                                    .ttl_ms = 10000,
                                    .quorum = 2,
                                    .count = 3,
                                    .nodes = nodes,
                                    .votes = votes};
    static const redlock_vote_kind kinds[] = {REDLOCK_VOTE_GRANTED, REDLOCK_VOTE_UNKNOWN, REDLOCK_VOTE_FAILED};
    static struct redlock_text errors[] = {{.string = ""},
                                           {.string = "no answer within 50 ms", .cause = REDLOCK_CAUSE_TIMEOUT},
                                           {.string = "connection refused", .cause = REDLOCK_CAUSE_CONNECTION}};
    for (unsigned i = 0; i < 3; i++) {
        result.votes[i] = (struct redlock_result_vote){
            .text = i == 0 ? NULL : &errors[i], .latency_us = (int32_t)i, .kind = (uint8_t)kinds[i]};
    }
    return result;
}

TEST(says_what_why_and_what_to_do) {
    char text[512];
    struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_NO_QUORUM);
    redlock_result_message(&result, text, sizeof text);
    assert_string_equal(text, "cannot acquire 'job\\x0a7': no quorum: 1 of 3 nodes granted it, 2 are needed (b:2: no "
                              "answer within 50 ms; c:3: connection refused). Look at these nodes and at the network "
                              "to them. If they are slow or far away, give a longer node_timeout_ms "
                              "(--node-timeout).");
    result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_TOO_SLOW);
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "drift of 102 ms");
    result = example(REDLOCK_RESULT_RELEASE, REDLOCK_ERR_LOST);
    redlock_result_message(&result, text, sizeof text);
    assert_string_equal(text,
                        "cannot release 'job\\x0a7': only 1 of 3 nodes had it under this token, 2 are needed (b:2: no "
                        "answer within 50 ms; c:3: connection refused). It expired, was released before, or "
                        "resource or token is not the right one.");
    result.loss = REDLOCK_LOSS_CAP;
    result.cap_ms = 60000;
    redlock_result_message(&result, text, sizeof text);
    assert_string_equal(text,
                        "cannot release 'job\\x0a7': the lease is lost: its deadline passed, and it was not renewed "
                        "after the cap of 60000 ms. Work under it may have overlapped with another holder's.");
    result.loss = REDLOCK_LOSS_DEADLINE;
    redlock_message_loss(&result, text, sizeof text);
    assert_string_equal(text,
                        "its deadline passed without an extension that a quorum of nodes confirmed (b:2: no answer "
                        "within 50 ms; c:3: connection refused)");
    result = example(REDLOCK_RESULT_EXTEND, REDLOCK_OK);
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "extended 'job\\x0a7': 1 of 3 nodes confirmed it");
    result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_CONTENDED);
    result.votes[1].kind = REDLOCK_VOTE_PENDING;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "1 of 3 nodes granted it, 2 are needed, 1 had not answered yet (c:3: ");
    assert_lacks(text, "later");
    result.passed_over = 2;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "). 2 that began to wait later got it before. Try again once it is released.");
    assert_int_equal(redlock_result_passed_over(&result), 2);
    assert_int_equal(redlock_result_message(NULL, text, sizeof text), 0);
    assert_string_equal(text, "");
    result = example(REDLOCK_RESULT_CONNECT, REDLOCK_ERR_CLOSED);
    redlock_result_message(&result, text, sizeof text);
    assert_string_equal(text, "cannot connect: the manager is closing.");
}

/* Equal texts are told once, and what to do follows from the cause of what the nodes said, not
 * from its words. */
TEST(folds_texts_and_advises_by_cause) {
    static const char look[] = "Look at these nodes and at the network to them.",
                      slow[] = "If they are slow or far away, give a longer node_timeout_ms (--node-timeout).";
    static const struct {
        enum redlock_cause cause;
        const char *error, *advice;
    } table[] = {
        {REDLOCK_CAUSE_CONNECTION, "connection refused", look},
        {REDLOCK_CAUSE_TLS, "its certificate is not accepted: certificate has expired", "Check the certificates"},
        {REDLOCK_CAUSE_AUTH, "AUTH failed: WRONGPASS invalid username-password pair", "Check user and password"},
        {REDLOCK_CAUSE_DATABASE, "SELECT 99 failed: DB index is out of range",
         "Correct the database in the nodes' URIs"},
        {REDLOCK_CAUSE_NOPERM, "NOPERM this user has no permissions to run the 'evalsha' command",
         "docs/operations.md"},
        {REDLOCK_CAUSE_REPLICA, "the node is a replica of 10.0.0.1:6379: Redlock needs independent primaries",
         "Correct the list of nodes: each must be a primary"},
        {REDLOCK_CAUSE_SAME_SERVER, "the same server as a:1 (one run_id): each node must be a server of its own",
         "Correct the list of nodes: each must be a server"},
        {REDLOCK_CAUSE_CLUSTER, "CROSSSLOT Keys in request don't hash to the same slot", "without cluster mode"},
        {REDLOCK_CAUSE_LOADING, "LOADING Redis is loading the dataset in memory", "Wait until these nodes"},
        {REDLOCK_CAUSE_BUSY, "BUSY Redis is busy running a script", "Wait: these nodes are busy"},
        {REDLOCK_CAUSE_NOT_A_NODE, "the node answered out of protocol; is it a Redis server?", "without a proxy"},
        {REDLOCK_CAUSE_OOM, "OOM command not allowed when used memory > 'maxmemory'.", "maxmemory"},
        {REDLOCK_CAUSE_OURS, "too many open files", "ulimit -n"},
        {REDLOCK_CAUSE_SERVER, "ERR no ROOM", look},
        {REDLOCK_CAUSE_MISCONF, "NOREPLICAS Not enough good replicas to write.", look},
        {REDLOCK_CAUSE_TIMEOUT, "no answer within 50 ms", slow},
        {REDLOCK_CAUSE_STALLED, "stalled: the last 3 requests got no answer within 50 ms", slow},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[512], folded[256];
        struct redlock_text error = {.string = table[i].error, .cause = table[i].cause};
        struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_NO_QUORUM);
        result.resource = "OOM";
        result.votes[1].text = result.votes[2].text = &error;
        redlock_result_message(&result, text, sizeof text);
        snprintf(folded, sizeof folded, "(b:2, c:3: %s). ", table[i].error);
        assert_contains(text, folded);
        assert_contains(strstr(text, folded) + strlen(folded), table[i].advice);
    }
}

/* The first of the list is the one to mend first. A vote that does not complain has no cause. */
TEST(of_several_causes_one_is_advised_on) {
    static struct redlock_text full = {.string = "OOM command not allowed", .cause = REDLOCK_CAUSE_OOM},
                               denied = {.string = "NOPERM no", .cause = REDLOCK_CAUSE_NOPERM};
    char text[512];
    struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_NO_QUORUM);
    result.votes[1].text = &full;
    result.votes[2].text = &denied;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "The ACL user lacks");
    result.votes[2].kind = REDLOCK_VOTE_PENDING;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "see maxmemory");
}

/* To wait for nodes in quarantine helps only where they would make a quorum. */
TEST(advises_to_wait_only_where_that_helps) {
    static struct redlock_text quarantine = {.string = "no vote for 11 s: it restarted, and may have forgotten locks",
                                             .cause = REDLOCK_CAUSE_QUARANTINE};
    static struct redlock_text refused = {.string = "connection refused", .cause = REDLOCK_CAUSE_CONNECTION};
    char text[512];
    struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_NO_QUORUM);
    result.votes[1].kind = REDLOCK_VOTE_ABSTAINED;
    result.votes[1].text = &quarantine;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "). Wait until enough nodes may vote again");
    result.votes[0].kind = REDLOCK_VOTE_FAILED;
    result.votes[0].text = &refused;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "). Look at these nodes and at the network to them.");
    result.votes[2].kind = REDLOCK_VOTE_PENDING;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "). Wait until enough nodes may vote again");
}

/* The holder is named where the tokens at a quorum name the same one. */
TEST(says_who_holds_it) {
    static struct redlock_text a = {.string = "queued behind web-3:4711", .cause = REDLOCK_CAUSE_HELD},
                               b = {.string = "queued behind db:1", .cause = REDLOCK_CAUSE_HELD};
    char text[512];
    redlock_vote vote = {.size = sizeof vote};
    struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_CONTENDED);
    for (unsigned i = 0; i < 3; i++) {
        result.votes[i].kind = REDLOCK_VOTE_DENIED;
        result.votes[i].text = i == 1 ? &b : &a;
    }
    redlock_result_message(&result, text, sizeof text);
    assert_string_equal(
        text, "cannot acquire 'job\\x0a7': held by web-3:4711: 0 of 3 nodes granted it, 2 are needed (a:1, c:3: "
              "queued behind web-3:4711; b:2: queued behind db:1). Try again once it is released.");
    redlock_result *copy = redlock_result_copy(&result);
    assert_non_null(copy);
    assert_is(redlock_result_vote(copy, 0, &vote), REDLOCK_OK);
    assert_string_equal(vote.holder_text, "web-3:4711");
    assert_string_equal(vote.holder, "");
    redlock_result_free(copy);
    assert_is(redlock_result_vote(&result, 1, &vote), REDLOCK_OK);
    assert_string_equal(vote.holder_text, "db:1");
    result.votes[2].text = NULL;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, ": held by others: ");
    assert_is(redlock_result_vote(&result, 2, &vote), REDLOCK_OK);
    assert_string_equal(vote.holder_text, "");
    result = example(REDLOCK_RESULT_INSPECT, REDLOCK_OK);
    struct redlock_result_holder holders[] = {
        {.token = "00112233445566778899aabbccddeeff@web-3:4711"}, {.token = "another library's@web"}, {.token = ""}};
    result.holders = holders;
    assert_is(redlock_result_vote(&result, 0, &vote), REDLOCK_OK);
    assert_string_equal(vote.holder_text, "web-3:4711");
    assert_is(redlock_result_vote(&result, 1, &vote), REDLOCK_OK);
    assert_string_equal(vote.holder_text, "");
    redlock_result_message(&result, text, sizeof text);
    assert_lacks(text, "held by"); /* one node is no quorum */
    holders[1] = holders[0];
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "inspected 'job\\x0a7': held by web-3:4711: 1 of 3 nodes hold it");
}

/* "free" is an answer, too. */
TEST(an_inspection_without_a_quorum_lacks_answers) {
    char text[512];
    struct redlock_result result = example(REDLOCK_RESULT_INSPECT, REDLOCK_ERR_NO_QUORUM);
    result.votes[0].kind = REDLOCK_VOTE_DENIED;
    result.votes[0].text = NULL;
    result.votes[1].kind = REDLOCK_VOTE_FAILED;
    redlock_result_message(&result, text, sizeof text);
    assert_contains(text, "cannot inspect 'job\\x0a7': no quorum: 1 of 3 nodes answered, 2 are needed");
}

/* A call that was refused before any node was asked. */
TEST(a_refused_call_says_which_argument) {
    char text[512];
    redlock_result *result =
        redlock_result_refused(REDLOCK_RESULT_ACQUIRE, "r", REDLOCK_ERR_INVALID, "ttl_ms is 0; it must be 1 to 9");
    redlock_result *copy = redlock_result_copy(result);
    redlock_result_free(result);
    redlock_result_message(copy, text, sizeof text);
    assert_string_equal(text, "cannot acquire 'r': invalid argument: ttl_ms is 0; it must be 1 to 9.");
    assert_is(redlock_result_code(copy), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_result_vote_count(copy), 0);
    assert_int_equal(redlock_result_attempts(copy), 0);
    assert_null(redlock_result_lease(copy));
    assert_string_equal(redlock_result_resource(copy), "r");
    redlock_result_free(copy);
    result = redlock_result_refused(REDLOCK_RESULT_EXTEND, NULL, REDLOCK_ERR_CANCELLED, NULL);
    redlock_result_message(result, text, sizeof text);
    assert_string_equal(text, "cannot extend '': cancelled.");
    redlock_result_free(result);
    result = redlock_result_refused(REDLOCK_RESULT_INSPECT, "r", REDLOCK_ERR_INVALID, NULL);
    assert_int_equal(redlock_result_waiters(result), -1);
    assert_int_equal(redlock_result_waited_ms(result), -1);
    assert_int_equal(redlock_result_readers(result), -1);
    redlock_result_free(result);
}

TEST(message_fits_any_buffer) {
    struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_CONTENDED);
    char whole[512];
    const size_t length = redlock_result_message(&result, whole, sizeof whole);
    assert_int_equal(length, strlen(whole));
    assert_int_equal(redlock_result_message(&result, NULL, 0), length);
    for (size_t size = 1; size <= length + 1; size++) {
        char *part = malloc(size); /* exactly so large, for the sanitizer */
        assert_non_null(part);
        assert_int_equal(redlock_result_message(&result, part, size), length);
        assert_int_equal(strlen(part), size - 1);
        assert_memory_equal(part, whole, size - 1);
        free(part);
    }
}

TEST(a_copy_owns_its_strings) {
    struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_ERR_NO_QUORUM);
    char error[] = "will be gone";
    struct redlock_text text = {.string = error, .cause = REDLOCK_CAUSE_OOM};
    result.votes[1].text = &text;
    redlock_result *copy = redlock_result_copy(&result);
    assert_non_null(copy);
    memset(error, 'x', sizeof error - 1);
    text = (struct redlock_text){.string = "another"};
    redlock_vote vote = {.size = sizeof vote};
    assert_is(redlock_result_vote(copy, 1, &vote), REDLOCK_OK);
    assert_string_equal(vote.error, "will be gone");
    char message[512];
    redlock_result_message(copy, message, sizeof message);
    assert_contains(message, "see maxmemory");
    assert_string_equal(redlock_result_resource(copy), "job\n7");
    assert_is(redlock_result_code(copy), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(redlock_result_attempts(copy), 3);
    assert_is(redlock_result_vote(copy, 3, &vote), REDLOCK_ERR_INVALID);
    redlock_result_free(copy);
    redlock_result_free(NULL);
}

/* A program built against an older header has a shorter struct: nothing is written past it. */
TEST(a_shorter_vote_is_filled_as_far_as_it_goes) {
    struct redlock_result result = example(REDLOCK_RESULT_ACQUIRE, REDLOCK_OK);
    redlock_vote vote;
    memset(&vote, 0x5a, sizeof vote);
    vote.size = offsetof(redlock_vote, error);
    assert_is(redlock_result_vote(&result, 2, &vote), REDLOCK_OK);
    assert_is(vote.kind, REDLOCK_VOTE_FAILED);
    unsigned char untouched[sizeof vote.error];
    memset(untouched, 0x5a, sizeof untouched);
    assert_memory_equal(&vote.error, untouched, sizeof untouched);
}

TEST(every_code_has_a_name_and_a_text) {
#define REDLOCK_X(name, value, text)                                                                                   \
    assert_string_equal(redlock_strerror(value), text);                                                                \
    assert_lacks(redlock_error_name(value), "ERR_");
    REDLOCK_ERROR_MAP(REDLOCK_X)
#undef REDLOCK_X
    assert_string_equal(redlock_error_name(REDLOCK_ERR_NO_QUORUM), "NO_QUORUM");
    assert_string_equal(redlock_error_name(REDLOCK_OK), "OK");
    assert_string_equal(redlock_strerror(12345), "unknown code");
    assert_string_equal(redlock_vote_name(REDLOCK_VOTE_ABSTAINED), "ABSTAINED");
    assert_string_equal(redlock_node_state_name(REDLOCK_NODE_STALLED), "STALLED");
    assert_string_equal(redlock_version(), REDLOCK_VERSION);
}
