/* A node's second connection with a real server: pushes, kills, restarts, and what an ACL
 * refuses. */
#include "test.h"
#include <ev.h>

#include "loop/loop.h"
#include "node/node.h"
#include "servers.h"
#include "support.h"
#include "test.h"

#define LIMIT_NS INT64_C(20000000000)
#define A_PUSH   "000000000900000000000000000077 3 1763791726 50413 tok a key"

static struct servers servers;
static struct server *server;
static struct {
    struct ev_loop *ev;
    struct redlock_loop *loop;
    struct redlock_node *node;
    int pushes, told;
    uint32_t id;
    char key[32];
    enum redlock_listening listening;
    char why[256];
} heard;

static void on_answer(void *context, unsigned index, void *owner, uint32_t round, struct redlock_answer *answer) {
    (void)context, (void)index, (void)owner, (void)round, (void)answer;
}

static void on_greeted(void *context, unsigned index, const struct redlock_greeting *greeting) {
    (void)context, (void)index;
    assert_true(greeting->clock.server_us > 0);
}

static void on_ready_changed(void *context, unsigned index, bool ready) {
    (void)context, (void)index, (void)ready;
}

static void on_pushed(void *context, unsigned index, const struct redlock_push *push) {
    (void)context, (void)index;
    heard.pushes++;
    heard.id = push->id;
    (void)snprintf(heard.key, sizeof heard.key, "%.*s", (int)push->key_size, push->key);
}

static void on_listens(void *context, unsigned index, enum redlock_listening listening, struct redlock_text *why) {
    (void)context, (void)index;
    heard.told++;
    heard.listening = listening;
    (void)snprintf(heard.why, sizeof heard.why, "%s", redlock_text_string(why));
}

static const char *on_same_server(void *context, unsigned index, const char *run_id, bool *yields) {
    (void)context, (void)index, (void)run_id, (void)yields;
    return NULL;
}

/* Turns of the loop, if there is one, until the condition holds. */
#define UNTIL(condition)                                                                                               \
    for (int64_t end_ns = redlock_loop_now_ns(NULL) + LIMIT_NS; !(condition);) {                                       \
        if (redlock_loop_now_ns(NULL) > end_ns)                                                                        \
            fail_msg("did not happen: %s", #condition);                                                                \
        if (heard.ev != NULL)                                                                                          \
            ev_run(heard.ev, EVRUN_NOWAIT);                                                                            \
        support_pause_ms(1);                                                                                           \
    }

static void open_node(const char *credentials) {
    const struct redlock_server_options options = {
        .node_timeout_ms = 1000, .connect_timeout_ms = 5000, .client_name = "me", .probed = REDLOCK_PROBED_KEY};
    const struct redlock_server_callbacks listener = {.answer = on_answer,
                                                      .greeted = on_greeted,
                                                      .ready_changed = on_ready_changed,
                                                      .pushed = on_pushed,
                                                      .listens = on_listens,
                                                      .same_server = on_same_server};
    const struct redlock_loop_hooks hooks = {0};
    struct redlock_reactor reactor;
    struct redlock_address address;
    char uri[128];
    memset(&heard, 0, sizeof heard);
    heard.ev = ev_loop_new(0);
    heard.loop = redlock_loop_new(&redlock_libev_ops, heard.ev, &hooks);
    assert_non_null(heard.loop);
    redlock_loop_reactor(heard.loop, &reactor);
    (void)snprintf(uri, sizeof uri, "redis://%s%s", credentials, server->name);
    assert_is(redlock_address_parse(uri, &address, &(struct redlock_error_text){0}), REDLOCK_OK);
    heard.node = redlock_node_new(0, &address, &options, &reactor, &listener);
    assert_non_null(heard.node);
    redlock_node_listen(heard.node, "ch");
}

static void listen_as(const char *credentials) {
    open_node(credentials);
    UNTIL(heard.told > 0);
}

static void assert_listens(void) {
    assert_is(heard.listening, REDLOCK_LISTENING);
    const int before = heard.pushes;
    assert_string_equal(server_ask(server, "PUBLISH", "ch", A_PUSH), "1");
    UNTIL(heard.pushes > before);
    assert_int_equal(heard.id, 9);
    assert_string_equal(heard.key, "a key");
}

static bool no_subscriber(void) {
    return strstr(server_ask(server, "CLIENT", "LIST", "TYPE", "pubsub"), "id=") == NULL;
}

static int start(UNUSED void **state) {
    static const struct server_options options = {.config = "user bob on >geheim ~* allchannels +@all\n"
                                                            "user deaf on >geheim ~* resetchannels &other +@all\n"
                                                            "user mute on >geheim ~* allchannels +@all -subscribe\n"};
    servers_start(&servers, 1, &options);
    server = &servers.at[0];
    return 0;
}

static int start_without_subscribe(UNUSED void **state) {
    static const struct server_options options = {.config = "rename-command SUBSCRIBE \"\"\n"};
    servers_start(&servers, 1, &options);
    server = &servers.at[0];
    return 0;
}

/* SUBSCRIBE is answered as PSUBSCRIBE. */
static int start_without_confirmation(UNUSED void **state) {
    static const struct server_options options = {.config = "rename-command SUBSCRIBE \"\"\n"
                                                            "rename-command PSUBSCRIBE SUBSCRIBE\n"};
    servers_start(&servers, 1, &options);
    server = &servers.at[0];
    return 0;
}

static int tear_down(UNUSED void **state) {
    servers_stop(&servers);
    return 0;
}

static int close_node(UNUSED void **state) {
    redlock_node_delete(heard.node, false);
    redlock_loop_delete(heard.loop);
    ev_loop_destroy(heard.ev);
    heard.ev = NULL;
    UNTIL(no_subscriber());
    return 0;
}

TESTS_WITH(start, tear_down);
#define NODE_TEST(name) TEST_WITH(name, NULL, close_node)

NODE_TEST(a_publish_is_a_push) {
    listen_as("");
    assert_listens();
    assert_contains(server_ask(server, "CLIENT", "LIST", "TYPE", "pubsub"), " name=me-sub ");
    assert_string_equal(server_ask(server, "PUBLISH", "ch", "no push"), "1");
    assert_string_equal(server_ask(server, "PUBLISH", "hc", A_PUSH), "0");
    assert_listens();
    assert_int_equal(heard.pushes, 2);
    assert_int_equal(heard.told, 1);
}

NODE_TEST(a_user_listens) {
    listen_as("bob:geheim@");
    assert_listens();
    assert_contains(server_ask(server, "CLIENT", "LIST", "TYPE", "pubsub"), " user=bob ");
}

NODE_TEST(killed_it_comes_back) {
    listen_as("");
    for (int i = 1; i <= 3; i++) {
        assert_string_equal(server_ask(server, "CLIENT", "KILL", "TYPE", "pubsub"), "1");
        UNTIL(heard.told == 2 * i);
        assert_is(heard.listening, REDLOCK_LISTENING_NOT);
        UNTIL(heard.told == 2 * i + 1);
        assert_listens();
    }
}

NODE_TEST(after_a_restart_it_comes_back) {
    listen_as("");
    server_kill(server);
    UNTIL(heard.listening == REDLOCK_LISTENING_NOT);
    server_restart(server);
    UNTIL(heard.listening == REDLOCK_LISTENING);
    assert_int_equal(heard.told, 3);
    assert_listens();
}

/* The server's PONG has the form for subscribers, and the connection stays. */
NODE_TEST(its_ping_is_answered) {
    listen_as("");
    UNTIL(strstr(server_ask(server, "CLIENT", "LIST", "TYPE", "pubsub"), " cmd=ping ") != NULL);
    assert_listens();
    assert_int_equal(heard.told, 1);
}

static void assert_refused(const char *credentials, const char *words) {
    listen_as(credentials);
    assert_is(heard.listening, REDLOCK_LISTENING_REFUSED);
    assert_contains(heard.why, words);
}

NODE_TEST(without_the_channel_it_is_refused) {
    assert_refused("deaf:geheim@", "SUBSCRIBE refused (NOPERM");
}

NODE_TEST(without_permission_it_is_refused) {
    assert_refused("mute:geheim@", "SUBSCRIBE refused (NOPERM");
}

TESTS_WITH(start_without_subscribe, tear_down);

NODE_TEST(without_the_command_it_is_refused) {
    assert_refused("", "SUBSCRIBE refused (ERR unknown command");
}

static int subscribes(void) {
    int calls = 0;
    const char *counted = strstr(server_ask(server, "INFO", "commandstats"), "cmdstat_psubscribe:calls=");
    return counted != NULL && sscanf(counted, "cmdstat_psubscribe:calls=%d", &calls) == 1 ? calls : 0;
}

TESTS_WITH(start_without_confirmation, tear_down);

/* As behind a proxy that has its own idea of SUBSCRIBE. */
NODE_TEST(without_a_confirmation_it_is_as_refused) {
    redlock_node_info info = {.size = sizeof info};
    assert_refused("", "out of protocol");
    assert_int_equal(subscribes(), 3);
    UNTIL(subscribes() > 3); /* it goes on */
    assert_int_equal(heard.told, 1);
    redlock_node_info_get(heard.node, &info);
    assert_is(info.state, REDLOCK_NODE_READY);
    assert_contains(info.queue_error, "out of protocol");
}
