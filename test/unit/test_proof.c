/* What the handshake proves on the node: rights, role, and that it is no other node's server. */
#include "test.h"

#include "handshake_kit.h"

static void assert_probed(const char *bytes, enum redlock_handshake_state state, enum redlock_cause cause,
                          const char *words) {
    until_probe("role:master\r\nrun_id:r1\r\n");
    load();
    outbox.head = outbox.tail;
    if (state == REDLOCK_HANDSHAKE_UNUSABLE) {
        assert_refused(bytes, state, cause, words);
    } else {
        assert_int_equal(reply(bytes), state);
    }
}

static void say_lines(char bytes[512], const char *lines) {
    (void)snprintf(bytes, 512, "*2\r\n$%zu\r\n%s\r\n$0\r\n\r\n", strlen(lines), lines);
}

#define FRESH_TEST(name) TEST_WITH(name, handshake_setup, handshake_teardown)

/* Without one of these commands no lease is renewed or released. */
FRESH_TEST(a_server_that_lacks_a_needed_command_is_no_node) {
    static const char *const needed[][2] = {
        {"get", "GET"}, {"set", "SET"}, {"pttl", "PTTL"}, {"pexpire", "PEXPIRE"}, {"del", "DEL"}};
    char lines[256], words[256], bytes[512];
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        (void)snprintf(lines, sizeof lines, "%s ERR The user executing the script can't run this command or subcommand",
                       needed[i][0]);
        (void)snprintf(words, sizeof words,
                       "this user may not run %s, so no lease could be renewed and released here: "
                       "allow it by ACL SETUSER (+%s)",
                       needed[i][1], needed[i][0]);
        say_lines(bytes, lines);
        assert_probed(bytes, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NOPERM, words);
        (void)snprintf(lines, sizeof lines, "zadd NOPERM\n%s ERR Invalid command passed to redis.acl_check_cmd()",
                       needed[i][0]);
        (void)snprintf(words, sizeof words, "the server does not know %s, so", needed[i][1]);
        say_lines(bytes, lines);
        assert_probed(bytes, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA, words);
    }
}

FRESH_TEST(a_server_that_runs_no_scripts_is_no_node) {
    assert_probed("-NOPERM this user has no permissions to run the 'evalsha' command\r\n", REDLOCK_HANDSHAKE_UNUSABLE,
                  REDLOCK_CAUSE_NOPERM, "this user may not run EVALSHA, so no lease");
    assert_probed("-ERR unknown command 'EVALSHA', with args beginning with: 'abc'\r\n", REDLOCK_HANDSHAKE_UNUSABLE,
                  REDLOCK_CAUSE_NO_LUA, "the server does not know EVALSHA, so no lease");
    assert_probed("-ERR Could not find scripting engine 'lua'\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                  "the server runs no Lua scripts");
    /* It has not kept the script, and does not take the source. */
    assert_probed("-NOSCRIPT No matching script.\r\n", REDLOCK_HANDSHAKE_WAITING, REDLOCK_CAUSE_NONE, NULL);
    assert_introduced("*6\r\n$4\r\nEVAL\r\n");
    assert_refused("-NOPERM this user has no permissions to run the 'eval' command\r\n", REDLOCK_HANDSHAKE_UNUSABLE,
                   REDLOCK_CAUSE_NOPERM, "this user may not run EVAL and SCRIPT LOAD, so no lease");
    assert_probed("-NOSCRIPT No matching script.\r\n", REDLOCK_HANDSHAKE_WAITING, REDLOCK_CAUSE_NONE, NULL);
    assert_refused("-ERR unknown command 'EVAL'\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                   "the server does not know EVAL, so no lease");
}

/* INFO, HELLO and ROLE may all be refused. */
FRESH_TEST(a_server_that_takes_no_writes_is_a_replica) {
    char bytes[512];
    say_lines(bytes, "set READONLY You can't write against a read only replica.\nzadd NOPERM");
    assert_probed(bytes, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_REPLICA, "the node takes no writes (READONLY)");
    assert_string_equal(handshake.warning, "");
}

/* The probe is refused in words of the server's own. A renewal on a key that nobody has tells. */
FRESH_TEST(a_server_with_words_of_its_own_must_renew) {
    static const char *const errors[] = {"-ERR command is not permitted\r\n", "-ERR 'EVAL' command is disabled\r\n",
                                         "-ERR script tried accessing undeclared key\r\n",
                                         "-ERR wrong number of arguments for 'evalsha' command\r\n"};
    static const char *const passing[] = {":0\r\n", "-BUSY Redis is busy running a script.\r\n",
                                          "-NOPERM No permissions to access a key\r\n",
                                          "-OOM command not allowed when used memory > 'maxmemory'.\r\n"};
    const char *sha1 = redlock_script_get(REDLOCK_SCRIPT_EXTEND)->sha1;
    char said[256];
    (void)snprintf(said, sizeof said,
                   "*6\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$%zu\r\n" REDLOCK_PROBED_KEY "\r\n$%zu\r\n" MARK
                   "\r\n$1\r\n1\r\n",
                   sha1, strlen(REDLOCK_PROBED_KEY), strlen(MARK));
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        assert_probed(errors[i], REDLOCK_HANDSHAKE_WAITING, REDLOCK_CAUSE_NONE, NULL);
        assert_said(said);
        assert_refused(errors[i], REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA, "the server refuses our scripts (");
        for (size_t j = 0; j < sizeof passing / sizeof *passing; j++) {
            assert_probed(errors[i], REDLOCK_HANDSHAKE_WAITING, REDLOCK_CAUSE_NONE, NULL);
            outbox.head = outbox.tail;
            assert_is(reply(passing[j]), REDLOCK_HANDSHAKE_DONE);
        }
    }
}

/* Nor does it load scripts: EVAL, and a renewal by its source. */
FRESH_TEST(a_server_that_keeps_no_script_must_renew_by_source) {
    static const char error[] = "-ERR command is not permitted\r\n";
    until_probe("role:master\r\nrun_id:r1\r\n");
    assert_int_equal(reply("+OK\r\n"), WAITING);
    for (int i = 0; i <= REDLOCK_SCRIPT_COUNT; i++) {
        assert_int_equal(reply(error), WAITING);
    }
    outbox.head = outbox.tail;
    assert_int_equal(reply(error), WAITING);
    assert_introduced("*6\r\n$4\r\nEVAL\r\n");
    assert_int_equal(reply(error), WAITING);
    assert_introduced("*6\r\n$4\r\nEVAL\r\n");
    assert_refused(error, REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                   "the server refuses our scripts (ERR command is not permitted), so no lease could be renewed and "
                   "released here");
    assert_string_equal(handshake.warning, "");
}

/* A fault that passes, a key that is refused, and the words of other servers prove nothing. */
FRESH_TEST(what_proves_nothing_is_no_reason) {
    static const char *const replies[] = LIST(
        "-READONLY You can't write against a read only replica.\r\n",
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n", "-BUSY Redis is busy running a script.\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n", "-MISCONF Redis is configured to save RDB snapshots\r\n",
        "-CROSSSLOT Keys in request don't hash to the same slot\r\n", "-NOPERM No permissions to access a key\r\n",
        "+OK\r\n", ":1\r\n", "$-1\r\n", "$5\r\nhello\r\n", "*0\r\n", "*2\r\n:1\r\n:2\r\n",
        "*3\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n");
    static const char *const lines[] = {("get ERR The user executing the script can't access at least one of the keys "
                                         "mentioned in the command arguments"),
                                        "del ERR ACL failure in script: No permissions to access a key",
                                        "del READONLY You can't write against a read only replica.",
                                        "pexpire OOM command not allowed when used memory > 'maxmemory'.",
                                        "get",
                                        "get \n\n del",
                                        " NOPERM",
                                        "a name that is much too long NOPERM",
                                        "GET NOPERM"};
    char bytes[512];
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        assert_probed(replies[i], REDLOCK_HANDSHAKE_DONE, REDLOCK_CAUSE_NONE, NULL);
        assert_string_equal(handshake.warning, "");
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        say_lines(bytes, lines[i]);
        assert_probed(bytes, REDLOCK_HANDSHAKE_DONE, REDLOCK_CAUSE_NONE, NULL);
        assert_string_equal(handshake.warning, "");
        assert_string_equal(handshake.no_queue, "");
    }
}

FRESH_TEST(what_only_waiters_need_is_named) {
    char bytes[512];
    say_lines(bytes, "zpopmin ERR ACL failure in script: User u has no permissions to run the 'zpopmin' command\n"
                     "publish NOPERM\nhset ERR unknown command 'hset'");
    assert_probed(bytes, REDLOCK_HANDSHAKE_DONE, REDLOCK_CAUSE_NONE, NULL);
    assert_string_equal(handshake.no_queue, "waiting in order needs +zpopmin +publish &redlock:* HSET");
    assert_string_equal(handshake.no_shared, "");
    assert_string_equal(handshake.warning, "");
    assert_probed(NOTHING_MISSING, REDLOCK_HANDSHAKE_DONE, REDLOCK_CAUSE_NONE, NULL);
    assert_string_equal(handshake.no_queue, "");
}

FRESH_TEST(what_only_readers_need_is_named) {
    char bytes[512];
    say_lines(bytes, "zadd NOPERM\nzscore NOPERM\nzrange ERR unknown command 'zrange'\nzremrangebyscore NOPERM");
    assert_probed(bytes, REDLOCK_HANDSHAKE_DONE, REDLOCK_CAUSE_NONE, NULL);
    assert_string_equal(handshake.no_queue, "waiting in order needs +zadd");
    assert_string_equal(handshake.no_shared, "reading with others needs +zadd +zscore ZRANGE +zremrangebyscore");
    assert_string_equal(handshake.warning, "");
    assert_probed(NOTHING_MISSING, REDLOCK_HANDSHAKE_DONE, REDLOCK_CAUSE_NONE, NULL);
    assert_string_equal(handshake.no_shared, "");
}

/* Services forbid INFO in many words. */
FRESH_TEST(a_node_without_info_is_used) {
    static const char *const words[] = {"NOPERM no permissions to run the info command",
                                        "ERR No permission to execute this command", "ERR command is not allowed",
                                        "ERR unsupported command 'INFO'", "ERR something else"};
    char bytes[256];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        (void)snprintf(bytes, sizeof bytes, "-%s\r\n", words[i]);
        until_probe(bytes);
        assert_int_equal(
            reply("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n"
                  ":2\r\n$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
                  "$7\r\nmodules\r\n*0\r\n"),
            WAITING);
        assert_int_equal(reply("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"), WAITING);
        finish();
        assert_string_equal(handshake.info.role, "master");
        assert_string_equal(handshake.info.version, "redis 7.0.15");
        assert_contains(handshake.warning, words[i]);
        assert_contains(handshake.warning, "cannot see whether it may evict locks");
    }
}

FRESH_TEST(hello_or_role_tell_a_replica) {
    until_probe("-NOPERM no info\r\n");
    assert_refused("*2\r\n$4\r\nrole\r\n$7\r\nreplica\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_REPLICA,
                   "is a replica");
    until_probe("redis_version:9\r\n");
    assert_int_equal(reply("-ERR unknown command 'HELLO'\r\n"), WAITING);
    assert_refused("*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:14\r\n",
                   REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_REPLICA, "is a replica");
    until_probe("-NOPERM no info\r\n");
    assert_refused("*2\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NOT_A_NODE,
                   "a Sentinel is no node");
    until_probe("-NOPERM no info\r\n");
    assert_int_equal(reply("*2\r\n$4\r\nrole\r\n$7\r\nprimary\r\n"), WAITING);
    assert_int_equal(reply("+what?\r\n"), WAITING);
    finish();
}

/* A front that is up while what is behind it is not. */
FRESH_TEST(a_server_that_refuses_everything_is_tried_again) {
    start();
    for (int i = 0; i < 5 + 1 + REDLOCK_SCRIPT_COUNT + 1; i++) {
        assert_int_equal(reply("-ERR upstream failure\r\n"), WAITING);
    }
    assert_int_equal(reply("-ERR upstream failure\r\n"), WAITING); /* EVALSHA: EVAL follows */
    assert_int_equal(reply("-ERR upstream failure\r\n"), WAITING); /* and a renewal */
    assert_refused("-ERR upstream failure\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_SERVER,
                   "INFO failed, and all else: ERR upstream failure");
}

static void say_mark(char bytes[512], const char *mark) {
    (void)snprintf(bytes, 512, "*2\r\n$0\r\n\r\n$%zu\r\n%s\r\n", strlen(mark), mark);
}

static void assert_marked(const char *mark, bool marked, const char *twin) {
    char bytes[512];
    until_probe("role:master\r\n");
    load();
    say_mark(bytes, mark);
    assert_is(reply(bytes), REDLOCK_HANDSHAKE_DONE);
    assert_int_equal(handshake.marked, marked);
    assert_string_equal(handshake.twin, twin);
    assert_int_equal(
        strstr(handshake.warning, "INFO names no run_id: cannot see whether it is the same server") == NULL, marked);
}

/* A server without a run_id: the marker says which node of the manager came there first. */
FRESH_TEST(a_marker_tells_the_same_server) {
    static const char asked[] =
        "$13\r\nredlock:probe\r\n$4\r\nmine\r\n$33\r\n" MARK "\r\n$33\r\n" OTHER "\r\n$33\r\n" THIRD "\r\n";
    options.marker = "mine";
    handshake.told.marks[0] = OTHER;
    handshake.told.marks[1] = THIRD;
    handshake.told.mark_count = 2;
    assert_marked(MARK, true, "");
    assert_non_null(memmem(outbox.bytes, outbox.tail, asked, sizeof asked - 1));
    assert_marked(OTHER, true, OTHER);
    assert_marked(THIRD, true, THIRD);
    assert_marked("s00000000000000000000000000000004", false, "");
    assert_marked("NOPERM No permissions to access a key", false, "");
    assert_marked("ERR The user executing the script", false, ""); /* as long as a mark */
    /* With a run_id nobody needs it. */
    outbox.head = outbox.tail = 0;
    until_probe("role:master\r\nrun_id:r1\r\n");
    assert_null(memmem(outbox.bytes, outbox.tail, "$4\r\nmine\r\n", 10));
}

/* What a server says as soon as somebody connects comes in the place of the PONG. */
FRESH_TEST(what_comes_before_any_command_is_understood) {
    static const struct {
        const char *bytes;
        enum redlock_handshake_state state;
        enum redlock_cause cause;
        const char *words;
    } cases[] = {{"-DENIED Redis is running in protected mode\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_SERVER,
                  "refuses us"},
                 {"-ERR max number of clients reached\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_BUSY, "not ready"},
                 {"-LOADING Redis is loading\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_LOADING, "not ready"},
                 {":1\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_NOT_A_NODE, "out of protocol"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(redlock_handshake_start(&handshake, &outbox), WAITING);
        assert_refused(cases[i].bytes, cases[i].state, cases[i].cause, cases[i].words);
    }
    assert_int_equal(redlock_handshake_start(&handshake, &outbox), WAITING);
    assert_false(redlock_handshake_awaits_info(&handshake));
    assert_int_equal(reply("-NOAUTH Authentication required.\r\n"), WAITING);
    assert_true(redlock_handshake_awaits_info(&handshake));
    assert_refused("-NOAUTH Authentication required.\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_AUTH,
                   "needs a password");
}

/* Some servers say OK. */
FRESH_TEST(a_status_to_script_load_is_in_protocol) {
    until_probe("role:master\r\nrun_id:r1\r\n");
    for (int i = 0; i <= 1 + REDLOCK_SCRIPT_COUNT; i++) {
        assert_int_equal(reply("+OK\r\n"), WAITING);
    }
    assert_is(reply(NOTHING_MISSING), REDLOCK_HANDSHAKE_DONE);
}
