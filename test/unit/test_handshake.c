/* The handshake step by step: what is sent, and what each answer causes (R9, R18). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "node/handshake.h"
#include "wire/script.h"

static struct redlock_address address;
static struct redlock_handshake handshake;
static struct redlock_outbox outbox;
static struct redlock_reader *reader;

static int setup(void **state) {
    (void)state;
    address = (struct redlock_address){.kind = REDLOCK_ADDRESS_TCP};
    handshake = (struct redlock_handshake){.address = &address, .client_name = "me", .old_run_id = ""};
    outbox = (struct redlock_outbox){0};
    reader = redlock_reader_new();
    return reader == NULL ? -1 : 0;
}

static int teardown(void **state) {
    (void)state;
    redlock_outbox_clear(&outbox);
    redlock_reader_delete(reader);
    return 0;
}

static void assert_said(const char *expected) {
    assert_int_equal(redlock_outbox_size(&outbox), strlen(expected));
    assert_memory_equal(outbox.bytes + outbox.head, expected, strlen(expected));
    redlock_outbox_wrote(&outbox, strlen(expected));
}

static enum redlock_handshake_state reply(const char *bytes) {
    const struct redlock_reply *got;
    assert_true(redlock_reader_feed(reader, bytes, strlen(bytes)));
    assert_int_equal(redlock_reader_next(reader, &got), REDLOCK_READ_REPLY);
    return redlock_handshake_reply(&handshake, got, &outbox);
}

static enum redlock_handshake_state reply_info(const char *text) {
    char bytes[512];
    (void)snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);
    return reply(bytes);
}

static void start(void) {
    assert_int_equal(redlock_handshake_start(&handshake, &outbox), REDLOCK_HANDSHAKE_WAITING);
}

#define HELLO   "*1\r\n$4\r\nINFO\r\n*1\r\n$4\r\nTIME\r\n*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"
#define A_TIME  "*2\r\n$10\r\n1763791726\r\n$5\r\n50413\r\n"
#define NAME    "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n"
#define WAITING REDLOCK_HANDSHAKE_WAITING

/* Drops the bytes that load the scripts, after a check of how they begin. */
static void assert_introduced(const char *begin) {
    assert_true(redlock_outbox_size(&outbox) > strlen(begin));
    assert_memory_equal(outbox.bytes + outbox.head, begin, strlen(begin));
    redlock_outbox_wrote(&outbox, redlock_outbox_size(&outbox));
}

static void finish(void) {
    assert_int_equal(reply("+OK\r\n"), WAITING);
    for (int i = 1; i < REDLOCK_SCRIPT_COUNT; i++) {
        assert_int_equal(reply("$3\r\nsha\r\n"), WAITING);
    }
    assert_int_equal(reply("$3\r\nsha\r\n"), REDLOCK_HANDSHAKE_DONE);
}

static void all_goes_well(void **state) {
    (void)state;
    start();
    assert_said(HELLO);
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

static void user_password_and_database_come_first(void **state) {
    char user[] = "bob", password[] = "geheim";
    (void)state;
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
static void the_old_connection_is_killed_on_the_same_server_only(void **state) {
    (void)state;
    handshake.old_run_id = "r1";
    handshake.old_client_id = 41;
    start();
    assert_said(HELLO);
    assert_int_equal(reply_info("run_id:r1\r\n"), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":77\r\n"), WAITING);
    assert_introduced("*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$2\r\n41\r\n" NAME);
    assert_int_equal(reply("-NOPERM this user has no permissions\r\n"), WAITING);
    finish();
    start();
    assert_said(HELLO);
    assert_int_equal(reply_info("run_id:r2\r\n"), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":77\r\n"), WAITING);
    assert_introduced(NAME);
    finish();
}

static void assert_refused(const char *bytes, enum redlock_handshake_state state, enum redlock_cause cause,
                           const char *words) {
    assert_int_equal(reply(bytes), state);
    assert_int_equal(handshake.cause, cause);
    if (strstr(handshake.reason, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", handshake.reason, words);
    }
}

static void nodes_that_may_not_vote(void **state) {
    char password[] = "geheim";
    (void)state;
    start();
    assert_int_equal(reply_info("role:slave\r\nmaster_host:h\r\nmaster_port:1\r\n"), REDLOCK_HANDSHAKE_UNUSABLE);
    assert_non_null(strstr(handshake.reason, "replica of h:1"));
    assert_int_equal(handshake.cause, REDLOCK_CAUSE_REPLICA);
    start();
    assert_int_equal(reply_info("redis_mode:sentinel\r\n"), REDLOCK_HANDSHAKE_UNUSABLE);
    assert_int_equal(handshake.cause, REDLOCK_CAUSE_NOT_A_NODE);
    start();
    assert_int_equal(reply_info("role:master\r\nloading:1\r\n"), REDLOCK_HANDSHAKE_RETRY);
    assert_int_equal(handshake.cause, REDLOCK_CAUSE_LOADING);
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
    assert_refused("-ERR something else\r\n", REDLOCK_HANDSHAKE_RETRY, REDLOCK_CAUSE_SERVER,
                   "INFO failed: ERR something else");
    address.credentials.password = password;
    start();
    assert_refused("-WRONGPASS invalid username-password pair\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_AUTH,
                   "AUTH failed: WRONGPASS");
    start();
    assert_refused("-ERR what is geheim?\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_AUTH, "AUTH failed");
    assert_null(strstr(handshake.reason, "geheim"));
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

static void a_server_without_lua_is_no_node(void **state) {
    (void)state;
    start();
    assert_int_equal(reply_info("valkey_version:9.1.0"), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":7\r\n"), WAITING);
    assert_int_equal(reply("+OK\r\n"), WAITING);
    assert_refused("-ERR Could not find scripting engine 'lua'\r\n", REDLOCK_HANDSHAKE_UNUSABLE, REDLOCK_CAUSE_NO_LUA,
                   "the server runs no Lua scripts (ERR Could not find scripting engine 'lua')");
}

/* What an ACL refuses is a warning where it is safe to go on. */
static void refused_optional_commands_are_warnings(void **state) {
    (void)state;
    start();
    assert_int_equal(reply("-NOPERM no info\r\n"), WAITING);
    assert_int_equal(reply("-NOPERM no time\r\n"), WAITING);
    assert_int_equal(reply("-NOPERM no client\r\n"), WAITING);
    assert_int_equal(reply("-NOPERM no client\r\n"), WAITING);
    for (int i = 1; i < REDLOCK_SCRIPT_COUNT; i++) {
        assert_int_equal(reply("-NOPERM no script\r\n"), WAITING);
    }
    assert_int_equal(reply("-NOPERM no script\r\n"), REDLOCK_HANDSHAKE_DONE);
    assert_int_equal(handshake.client_id, 0);
    assert_true(handshake.scripts_refused);
    assert_non_null(strstr(handshake.warning, "INFO refused"));
    assert_null(strstr(handshake.warning, "TIME")); /* without a guard, nobody misses it */
    assert_non_null(strstr(handshake.warning, "; CLIENT SETNAME refused"));
    assert_non_null(strstr(handshake.warning, "; SCRIPT LOAD refused"));
    start();
    assert_int_equal(reply_info("maxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\nredis_mode:cluster"), WAITING);
    assert_non_null(strstr(handshake.warning, "allkeys-lru"));
    assert_non_null(strstr(handshake.warning, "cluster"));
}

static void start_guarded(const char *info) {
    handshake.guarded = true;
    start();
    assert_said(HELLO);
    assert_int_equal(reply_info(info), WAITING);
}

static void assert_timeless(const char *bytes, const char *warning) {
    start_guarded("run_id:r1\r\n");
    assert_int_equal(reply(bytes), WAITING);
    assert_true(handshake.server_us == 0);
    assert_non_null(strstr(handshake.warning, warning));
}

/* The node can vote, but its clock is not watched, and a warning says so. */
static void a_guarded_node_without_a_time_is_warned_of(void **state) {
    (void)state;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_goes_well, setup, teardown),
        cmocka_unit_test_setup_teardown(user_password_and_database_come_first, setup, teardown),
        cmocka_unit_test_setup_teardown(the_old_connection_is_killed_on_the_same_server_only, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_that_may_not_vote, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_without_lua_is_no_node, setup, teardown),
        cmocka_unit_test_setup_teardown(refused_optional_commands_are_warnings, setup, teardown),
        cmocka_unit_test_setup_teardown(a_guarded_node_without_a_time_is_warned_of, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
