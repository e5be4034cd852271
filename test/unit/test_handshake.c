/* The handshake step by step: what is sent, and what each answer causes (R9, R18). */
#include "test.h"

#include "handshake_kit.h"

#define FRESH_TEST(name) TEST_WITH(name, handshake_setup, handshake_teardown)

FRESH_TEST(all_goes_well) {
    start();
    assert_said(PING HELLO);
    assert_int_equal(reply_info("run_id:r1\r\nrole:master\r\n"), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":77\r\n"), WAITING);
    assert_introduced(NAME "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n");
    finish();
    assert_int_equal(handshake.client_id, 77);
    assert_string_equal(handshake.info.run_id, "r1");
    assert_true(handshake.server_us == INT64_C(1763791726050413));
    assert_string_equal(handshake.warning, "");
}

FRESH_TEST(user_password_and_database_come_first) {
    char user[] = "bob", password[] = "geheim";
    address.credentials.user = user;
    address.credentials.password = password;
    address.db = 12;
    start();
    assert_said("*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$6\r\ngeheim\r\n*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n" HELLO);
    assert_int_equal(reply("+OK\r\n"), WAITING);
    assert_int_equal(reply("+OK\r\n"), WAITING);
    address.credentials.user = NULL;
    address.db = 0;
    start();
    assert_said("*2\r\n$4\r\nAUTH\r\n$6\r\ngeheim\r\n" HELLO);
}

/* R9: a client id is valid only on the server that gave it. */
FRESH_TEST(the_old_connection_is_killed_on_the_same_server_only) {
    handshake.told.old_run_id = "r1";
    handshake.told.old_client_id = 41;
    start();
    assert_said(PING HELLO);
    assert_int_equal(reply_info("role:master\r\nrun_id:r1\r\n"), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":77\r\n"), WAITING);
    assert_introduced("*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$2\r\n41\r\n" NAME);
    assert_int_equal(reply("-NOPERM this user has no permissions\r\n"), WAITING);
    finish();
    start();
    assert_said(PING HELLO);
    assert_int_equal(reply_info("role:master\r\nrun_id:r2\r\n"), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":77\r\n"), WAITING);
    assert_introduced(NAME);
    finish();
}

FRESH_TEST(nodes_that_may_not_vote) {
    char password[] = "geheim";
    start();
    assert_is(reply_info("role:slave\r\nmaster_host:h\r\nmaster_port:1\r\n"), REDLOCK_HANDSHAKE_UNUSABLE);
    assert_contains(handshake.reason, "replica of h:1");
    assert_is(handshake.cause, REDLOCK_CAUSE_REPLICA);
    start();
    assert_is(reply_info("redis_mode:sentinel\r\n"), REDLOCK_HANDSHAKE_UNUSABLE);
    assert_is(handshake.cause, REDLOCK_CAUSE_NOT_A_NODE);
    start();
    assert_is(reply_info("role:master\r\nloading:1\r\n"), REDLOCK_HANDSHAKE_RETRY);
    assert_is(handshake.cause, REDLOCK_CAUSE_LOADING);
    start();
    assert_refused("-NOAUTH Authentication required.\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_AUTH,
                   "needs a password");
    start();
    assert_refused("-DENIED protected mode\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_SERVER, "refuses us");
    start();
    assert_refused("-LOADING Redis is loading\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_LOADING, "not ready");
    start();
    assert_refused("-ERR max number of clients reached\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_BUSY, "not ready");
    start();
    assert_refused(":1\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_NOT_A_NODE, "out of protocol");
    start();
    assert_refused("-ERR max number of clients reached\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_BUSY, "not ready");
    address.credentials.password = password;
    start();
    assert_refused("-WRONGPASS invalid username-password pair\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_AUTH,
                   "AUTH failed: WRONGPASS");
    start();
    assert_refused("-ERR what is geheim?\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_AUTH, "AUTH failed");
    assert_lacks(handshake.reason, "geheim");
    start();
    assert_refused("-ERR max number of clients reached\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_BUSY, "not ready");
    address.credentials.password = NULL;
    address.db = 99;
    start();
    assert_refused("-NOPERM no SELECT\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NOPERM, "SELECT 99 failed");
    start();
    assert_refused("-ERR DB index is out of range\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_DATABASE,
                   "SELECT 99 failed");
}

FRESH_TEST(a_server_without_lua_is_no_node) {
    start();
    assert_int_equal(reply_info("role:master\r\nvalkey_version:9.1.0"), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":7\r\n"), WAITING);
    assert_int_equal(reply("+OK\r\n"), WAITING);
    assert_refused("-ERR Could not find scripting engine 'lua'\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                   "the server runs no Lua scripts (ERR Could not find scripting engine 'lua')");
}

/* What an ACL refuses is a warning where it is safe to go on. */
FRESH_TEST(refused_optional_commands_are_warnings) {
    start();
    assert_int_equal(reply("-NOPERM no info\r\n"), WAITING);
    assert_int_equal(reply("-NOPERM no time\r\n"), WAITING);
    assert_int_equal(reply("-NOPERM no client\r\n"), WAITING);
    assert_int_equal(reply("-ERR unknown command 'HELLO'\r\n"), WAITING);
    assert_int_equal(reply("-NOPERM no role\r\n"), WAITING);
    assert_int_equal(reply("-NOPERM no client\r\n"), WAITING);
    for (int i = 0; i <= REDLOCK_SCRIPT_COUNT; i++) {
        assert_int_equal(reply("-NOPERM no script\r\n"), WAITING);
    }
    outbox.head = outbox.tail;
    assert_int_equal(reply("-NOSCRIPT No matching script.\r\n"), WAITING);
    assert_introduced("*6\r\n$4\r\nEVAL\r\n");
    assert_is(reply(NOTHING_MISSING), REDLOCK_HANDSHAKE_DONE);
    assert_int_equal(handshake.client_id, 0);
    assert_true(handshake.scripts_refused);
    assert_non_null(
        strstr(handshake.warning, "INFO refused (NOPERM no info): cannot see whether this is a primary, or"));
    assert_lacks(handshake.warning, "TIME"); /* without a guard, nobody misses it */
    assert_contains(handshake.warning, "CLIENT SETNAME refused");
    assert_contains(handshake.warning, "; SCRIPT LOAD refused");
    start();
    assert_int_equal(reply_info("role:primary\r\nmaxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\nredis_mode:cluster"),
                     WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":7\r\n"), WAITING);
    finish();
    assert_contains(handshake.warning, "allkeys-lru");
    assert_contains(handshake.warning, "cluster");
}

static void start_guarded(const char *info) {
    options.guarded = true;
    start();
    assert_said(PING HELLO);
    assert_int_equal(reply_info(info), WAITING);
}

static void assert_timeless(const char *bytes, const char *warning) {
    start_guarded("run_id:r1\r\n");
    assert_int_equal(reply(bytes), WAITING);
    assert_true(handshake.server_us == 0);
    assert_contains(handshake.warning, warning);
}

/* The node can vote, but its clock is not watched, and a warning says so. */
FRESH_TEST(a_guarded_node_without_a_time_is_warned_of) {
    assert_timeless("-NOPERM no TIME\r\n", "TIME refused (NOPERM no TIME)");
    assert_timeless("*2\r\n$2\r\n-1\r\n$1\r\n0\r\n", "TIME tells no time");
    assert_timeless("*2\r\n$11\r\n99999999999\r\n$1\r\n0\r\n", "TIME tells no time");
    assert_timeless("*1\r\n$10\r\n1763791726\r\n", "TIME tells no time");
    assert_timeless("*3\r\n$10\r\n1763791726\r\n$1\r\n0\r\n$1\r\n0\r\n", "TIME tells no time");
    start_guarded("run_id:r1\r\n");
    assert_refused("+OK\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_NOT_A_NODE, "out of protocol");
    start_guarded("run_id:r1\r\n");
    assert_int_equal(reply(A_TIME), WAITING);
    assert_string_equal(handshake.warning, "");
    /* The reader still has the elements of that reply. */
    assert_timeless("-NOPERM no TIME\r\n", "TIME refused (NOPERM no TIME)");
    start_guarded("run_id:r1\r\n");
    assert_int_equal(reply(A_TIME), WAITING);
    assert_refused("+OK\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_NOT_A_NODE, "out of protocol");
    /* What the last connection said is forgotten. */
    handshake.server_us = 1;
    start_guarded("run_id:r1\r\n");
    assert_true(handshake.server_us == 0);
}
