/* The helpers themselves: servers start, die, pause and return; the proxy and the hostile node do
 * what the test says. */
#include <unistd.h>

#include "drive.h"
#include "fake_server.h"
#include "proxy.h"
#include "servers.h"
#include "support.h"
#include "test.h"

static struct servers servers;

static int tear_down(UNUSED void **state) {
    servers_stop(&servers);
    return 0;
}

#define FRESH_TEST(name) TEST_WITH(name, NULL, tear_down)

FRESH_TEST(a_server_restarts_on_its_port_empty_or_with_its_aof) {
    servers_start(&servers, 1, NULL);
    struct server *plain = &servers.at[0];
    struct server *durable = servers_add(&servers, &(struct server_options){.append_only = true, .password = "pw"});
    assert_string_equal(server_ask(plain, "SET", "k", "v w"), "OK");
    assert_string_equal(server_ask(durable, "SET", "k", "v"), "OK");
    assert_string_equal(server_ask(plain, "GET", "k"), "v w");
    assert_int_equal(server_pttl_ms(plain, "k"), -1);
    assert_int_equal(servers_with_key(&servers, "k"), 2);
    server_kill(plain);
    assert_int_equal(servers_with_key(&servers, "k"), 1);
    server_kill(durable);
    server_restart(plain);
    server_restart(durable);
    assert_string_equal(server_ask(plain, "GET", "k"), "(nil)");
    assert_string_equal(server_ask(durable, "GET", "k"), "v");
    assert_int_equal(strncmp(server_ask(plain, "NOSUCH"), "-ERR", 4), 0);
    struct raw unix_client;
    assert_true(raw_open_unix(&unix_client, plain->socket));
    assert_string_equal(raw_ask(&unix_client, "PING"), "PONG");
    raw_close(&unix_client);
}

FRESH_TEST(a_paused_server_is_silent_and_returns) {
    servers_start(&servers, 1, NULL);
    server_pause(&servers.at[0]);
    struct raw raw;
    assert_true(raw_open_tcp(&raw, "127.0.0.1", servers.at[0].port));
    raw.timeout_ms = 50;
    assert_int_equal(strncmp(raw_ask(&raw, "PING"), "-IO", 3), 0);
    raw_close(&raw);
    server_resume(&servers.at[0]);
    assert_string_equal(server_ask(&servers.at[0], "PING"), "PONG");
}

FRESH_TEST(the_directory_of_a_stopped_server_is_gone) {
    char directory[64];
    servers_start(&servers, 1, NULL);
    strcpy(directory, servers.at[0].directory);
    pid_t pid = servers.at[0].pid;
    assert_int_equal(access(directory, F_OK), 0);
    servers_stop(&servers);
    assert_int_not_equal(access(directory, F_OK), 0);
    assert_true(pid > 0);
}

static int proxy_port(const struct proxy *proxy) {
    return atoi(strrchr(proxy_name(proxy), ':') + 1);
}

FRESH_TEST(the_proxy_holds_swallows_and_cuts) {
    servers_start(&servers, 1, NULL);
    struct proxy *proxy = proxy_start(servers.at[0].port);
    struct raw raw;
    assert_true(raw_open_tcp(&raw, "127.0.0.1", proxy_port(proxy)));
    assert_string_equal(raw_ask(&raw, "SET", "k", "v"), "OK");
    proxy_hold(proxy, PROXY_REPLIES, true);
    assert_true(raw_send(&raw, "SET", "held", "v"));
    for (int i = 0; i < 1000 && !server_has_key(&servers.at[0], "held"); i++) {
        support_pause_ms(5);
    }
    assert_true(server_has_key(&servers.at[0], "held"));
    proxy_hold(proxy, PROXY_REPLIES, false);
    assert_string_equal(raw_read(&raw), "OK");

    proxy_hold(proxy, PROXY_REQUESTS, true);
    assert_true(raw_send(&raw, "SET", "late", "v"));
    raw_close(&raw);
    support_pause_ms(20);
    assert_false(server_has_key(&servers.at[0], "late"));
    proxy_hold(proxy, PROXY_REQUESTS, false);
    for (int i = 0; i < 1000 && !server_has_key(&servers.at[0], "late"); i++) {
        support_pause_ms(5);
    }
    assert_true(server_has_key(&servers.at[0], "late"));

    proxy_cut_after(proxy, PROXY_REPLIES, 5 + 3, PROXY_RST);
    assert_true(raw_open_tcp(&raw, "127.0.0.1", proxy_port(proxy)));
    assert_string_equal(raw_ask(&raw, "SET", "k", "v"), "OK");
    assert_int_equal(strncmp(raw_ask(&raw, "SET", "k", "v"), "-IO", 3), 0);
    raw_close(&raw);
    assert_int_equal(proxy_connections(proxy), 2);
    proxy_stop(proxy);
}

/* What a client reads of the reply "+PONG" over the proxy, with this mishap at the third byte. */
static const char *pong_with(struct proxy *proxy, struct raw *raw, struct mishap mishap) {
    mishap.after = 2;
    raw_close(raw);
    assert_true(raw_open_tcp(raw, "127.0.0.1", proxy_port(proxy)));
    proxy_plan(proxy, PROXY_REPLIES, &mishap);
    return raw_ask(raw, "PING");
}

FRESH_TEST(the_proxy_makes_a_mishap_at_an_exact_byte) {
    servers_start(&servers, 1, NULL);
    struct proxy *proxy = proxy_start(servers.at[0].port);
    struct raw raw = {.fd = -1};
    assert_string_equal(pong_with(proxy, &raw, (struct mishap){.kind = MISHAP_INJECT, .size = 2, .bytes = "xy"}),
                        "PxyONG");
    assert_string_equal(raw_ask(&raw, "PING"), "PONG");
    assert_string_equal(pong_with(proxy, &raw, (struct mishap){.kind = MISHAP_SWALLOW, .size = 2}), "PG");
    assert_string_equal(raw_ask(&raw, "PING"), "PONG");
    assert_string_equal(pong_with(proxy, &raw, (struct mishap){.kind = MISHAP_CORRUPT, .mask = 1}), "PNNG");
    assert_string_equal(raw_ask(&raw, "PING"), "PONG");
    const struct mishap off = {.kind = MISHAP_ALTER, .size = 2, .bytes = "12", .mask = 1};
    proxy_plan(proxy, PROXY_REPLIES, &off);
    assert_string_equal(raw_ask(&raw, "ECHO", "no number"), "no number");
    assert_string_equal(raw_ask(&raw, "ECHO", "01234"), "01224");
    assert_string_equal(raw_ask(&raw, "ECHO", "01234"), "01234");
    assert_int_equal(strncmp(pong_with(proxy, &raw, (struct mishap){.kind = MISHAP_CUT}), "-IO", 3), 0);
    raw_close(&raw);
    assert_true(raw_open_tcp(&raw, "127.0.0.1", proxy_port(proxy)));
    proxy_trickle(proxy, PROXY_REPLIES, true);
    assert_string_equal(raw_ask(&raw, "ECHO", "one byte at a time"), "one byte at a time");
    assert_int_equal(proxy_mishaps(proxy, MISHAP_INJECT), 1);
    assert_int_equal(proxy_mishaps(proxy, MISHAP_CUT), 1);
    raw_close(&raw);
    proxy_stop(proxy);
}

FRESH_TEST(the_hostile_node_behaves_then_does_not) {
    struct fake_script script = {.behave_in_handshake = true, .bytes = "?!\r\n", .size = 4, .end = FAKE_FIN};
    struct fake_server *fake = fake_server_start(&script);
    struct raw raw;
    assert_true(raw_open_tcp(&raw, "127.0.0.1", atoi(strrchr(fake_server_name(fake), ':') + 1)));
    assert_string_equal(raw_ask(&raw, "PING"), "PONG");
    assert_contains(raw_ask(&raw, "INFO"), "run_id:");
    assert_int_equal(strncmp(raw_ask(&raw, "SET", "k", "v"), "-IO", 3), 0);
    assert_int_equal(fake_server_hostile_answers(fake), 1);
    raw_close(&raw);
    fake_server_stop(fake);
}
