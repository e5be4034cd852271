/* Every fault of a node, on real servers. Also nodes that are dead, paused, full, or no servers at
 * all. */
#include "backends/admin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node_kit.h"
#include "test.h"

struct world {
    struct nodes nodes;
    int held;
    struct chaos_error error;
};

static int set_up(void **state) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    nodes_start(&world->nodes);
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    if (world->held != 0) {
        close(world->held);
    }
    nodes_stop(&world->nodes);
    free(world);
    return 0;
}

static uint16_t port_of(const struct world *world) {
    return world->nodes.backend->ports[0];
}

static bool begin(struct world *world, enum chaos_fault_kind kind, int64_t amount) {
    struct chaos_fault fault = {.kind = kind, .nodes = 1, .amount = amount};
    world->error.text[0] = '\0';
    return chaos_admin_begin(port_of(world), &fault, &world->held, &world->error);
}

static bool end(struct world *world, enum chaos_fault_kind kind) {
    struct chaos_fault fault = {.kind = kind, .nodes = 1};
    world->error.text[0] = '\0';
    return chaos_admin_end(port_of(world), &fault, &world->held, &world->error);
}

/* A machine that is busy, or a fault of the test's own, may keep a node from answering in time:
 * then the sentence says to try again. Each fault can begin or end twice. */
static bool may_try_again(const struct world *world, int64_t deadline_ms) {
    return strstr(world->error.text, "try again") != NULL && support_now_ms() < deadline_ms;
}

static void begins(struct world *world, enum chaos_fault_kind kind, int64_t amount) {
    const int64_t deadline_ms = support_now_ms() + 20000;
    while (!begin(world, kind, amount)) {
        if (!may_try_again(world, deadline_ms)) {
            fail_msg("%s", world->error.text);
        }
    }
}

static void ends(struct world *world, enum chaos_fault_kind kind) {
    const int64_t deadline_ms = support_now_ms() + 20000;
    while (!end(world, kind)) {
        if (!may_try_again(world, deadline_ms)) {
            fail_msg("%s", world->error.text);
        }
    }
}

static const char *answer(const struct world *world, const char *command) {
    return nodes_ask(&world->nodes, 0, command);
}

/* A connection that stays open, as the default user or as the nemesis. */
static redisContext *connect_to(const struct world *world, bool as_chaos) {
    redisContext *redis = redisConnectWithTimeout("127.0.0.1", port_of(world), (struct timeval){5, 0});
    assert_non_null(redis);
    assert_int_equal(redis->err, 0);
    freeReplyObject(redisCommand(redis, as_chaos ? "AUTH chaos chaos" : "PING"));
    assert_int_equal(redis->err, 0);
    return redis;
}

static bool lives(redisContext *redis) {
    redisReply *reply = redisCommand(redis, "PING");
    bool alive = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return alive;
}

/* Reads a command's counters from INFO commandstats. */
static void count_calls(const struct world *world, const char *command, long long *calls, long long *us) {
    char name[64];
    redisContext *redis = connect_to(world, false);
    redisReply *reply = redisCommand(redis, "INFO commandstats");
    assert_non_null(reply);
    snprintf(name, sizeof name, "cmdstat_%s:", command);
    const char *at = strstr(reply->str, name);
    *calls = *us = 0;
    if (at != NULL) {
        assert_int_equal(sscanf(at + strlen(name), "calls=%lld,usec=%lld", calls, us), 2);
    }
    freeReplyObject(reply);
    redisFree(redis);
}

static int before(UNUSED void **state) {
    (void)signal(SIGPIPE, SIG_IGN);
    return 0;
}

TESTS_WITH(before, NULL);
#define FRESH_TEST(name) TEST_HAS(name, set_up, tear_down, NULL, (*state), UNUSED struct world *world)

FRESH_TEST(slow_is_done_though_nobody_waits) {
    long long calls, us;
    int64_t start_ms = support_now_ms();
    begins(world, CHAOS_FAULT_SLOW, 1250);
    bool returned_before = support_now_ms() - start_ms < 1250;
    nodes_await(&world->nodes, 0, "PING", "PONG");
    assert_true(support_now_ms() - start_ms >= 1250);
    count_calls(world, "debug", &calls, &us);
    assert_int_equal(calls, 2); /* the other one asked for permission */
    assert_true(us >= 1250000);
    /* Otherwise the machine hung. */
    assert_true(returned_before || support_now_ms() - start_ms > 2000);
    ends(world, CHAOS_FAULT_SLOW);
    for (int i = 0; i < 100; i++) {
        begins(world, CHAOS_FAULT_SLOW, 1);
    }
    nodes_await(&world->nodes, 0, "PING", "PONG");
    count_calls(world, "debug", &calls, &us);
    assert_int_equal(calls, 202);
    assert_true(us >= 1350000);
}

FRESH_TEST(busy_ends_by_itself) {
    long long calls, us;
    begins(world, CHAOS_FAULT_BUSY, 400);
    nodes_await(&world->nodes, 0, "PING", "PONG");
    count_calls(world, "eval", &calls, &us);
    assert_int_equal(calls, 4); /* three of them measure */
    assert_true(us >= 100000);  /* and much longer on a machine that is busy */
    ends(world, CHAOS_FAULT_BUSY);
    assert_string_equal(answer(world, "CONFIG GET lua-time-limit"), "lua-time-limit 5000");
}

/* Valkey says its own name. */
static void await_busy(struct world *world) {
    const int64_t deadline_ms = support_now_ms() + 10000;
    while (strstr(answer(world, "PING"), " is busy running a script. ") == NULL) {
        assert_true(support_now_ms() < deadline_ms);
        support_pause_ms(5);
    }
}

FRESH_TEST(busy_is_ended) {
    int64_t start_ms = support_now_ms();
    begins(world, CHAOS_FAULT_BUSY, 60000);
    await_busy(world);
    assert_int_equal(chaos_admin_key_count(port_of(world), true, &world->error), -1);
    assert_contains(world->error.text, "was asked for KEYS * and answered \"BUSY ");
    assert_contains(world->error.text, "try again in a moment");
    ends(world, CHAOS_FAULT_BUSY);
    assert_string_equal(answer(world, "PING"), "PONG");
    assert_string_equal(answer(world, "CONFIG GET lua-time-limit"), "lua-time-limit 5000");
    assert_true(support_now_ms() - start_ms < 30000);
    ends(world, CHAOS_FAULT_BUSY);
}

/* On a busy machine a script runs longer than planned. The next one waits for it, for a while. */
FRESH_TEST(busy_follows_busy) {
    long long calls, us;
    begins(world, CHAOS_FAULT_BUSY, 50);
    begins(world, CHAOS_FAULT_BUSY, 60000);
    await_busy(world);
    struct chaos_fault third = {.kind = CHAOS_FAULT_BUSY, .amount = 10};
    assert_false(chaos_admin_begin(port_of(world), &third, &world->held, &world->error));
    assert_contains(world->error.text, "was asked for CONFIG SET lua-time-limit 10 and answered \"BUSY ");
    ends(world, CHAOS_FAULT_BUSY);
    count_calls(world, "eval", &calls, &us);
    assert_int_equal(calls, 8);
}

FRESH_TEST(scripts_are_forgotten) {
    assert_string_equal(answer(world, "SCRIPT LOAD return(7)"), "bc70ae583496ef68242126e5f723b4224435af02");
    assert_string_equal(answer(world, "EVALSHA bc70ae583496ef68242126e5f723b4224435af02 0"), "7");
    begins(world, CHAOS_FAULT_SCRIPT_FLUSH, 0);
    assert_contains(answer(world, "EVALSHA bc70ae583496ef68242126e5f723b4224435af02 0"), "NOSCRIPT");
    ends(world, CHAOS_FAULT_SCRIPT_FLUSH);
}

FRESH_TEST(keys_are_forgotten) {
    assert_int_equal(chaos_admin_key_count(port_of(world), true, &world->error), 0);
    answer(world, "SET a 1");
    answer(world, "SET b 1");
    answer(world, "SET b:wait 1");
    answer(world, "SET b:waiter 1");
    answer(world, "SET b:fence 1");
    assert_int_equal(chaos_admin_key_count(port_of(world), true, &world->error), 4);
    assert_int_equal(chaos_admin_key_count(port_of(world), false, &world->error), 2);
    begins(world, CHAOS_FAULT_FLUSHALL, 0);
    assert_int_equal(chaos_admin_key_count(port_of(world), true, &world->error), 0);
    ends(world, CHAOS_FAULT_FLUSHALL);
}

FRESH_TEST(clients_are_disconnected_the_nemesis_is_not) {
    redisContext *client = connect_to(world, false), *auditor = connect_to(world, true);
    begins(world, CHAOS_FAULT_DISCONNECT, 0);
    assert_false(lives(client));
    assert_true(lives(auditor));
    assert_string_equal(answer(world, "PING"), "PONG");
    ends(world, CHAOS_FAULT_DISCONNECT);
    redisFree(client);
    redisFree(auditor);
}

FRESH_TEST(subscriptions_are_closed_and_nothing_else) {
    redisContext *client = connect_to(world, false), *listener = connect_to(world, false);
    freeReplyObject(redisCommand(listener, "SUBSCRIBE c"));
    assert_string_equal(answer(world, "PUBLISH c x"), "1");
    begins(world, CHAOS_FAULT_UNSUBSCRIBE, 0);
    assert_string_equal(answer(world, "PUBLISH c x"), "0");
    assert_true(lives(client));
    ends(world, CHAOS_FAULT_UNSUBSCRIBE);
    redisFree(client);
    redisFree(listener);
}

FRESH_TEST(a_full_node_is_emptied_again) {
    redisContext *client = connect_to(world, false);
    begins(world, CHAOS_FAULT_MAXCLIENTS, 0);
    assert_true(world->held > 0);
    assert_string_equal(answer(world, "PING"), "ERR max number of clients reached");
    assert_true(lives(client));
    assert_false(chaos_admin_ping(port_of(world), &world->error));
    assert_contains(world->error.text, "max number of clients reached");
    assert_contains(world->error.text, "wait for the end of the maxclients fault");
    /* Meanwhile other faults begin and end, and one reply is never read. */
    begins(world, CHAOS_FAULT_SLOW, 50);
    begins(world, CHAOS_FAULT_OOM, 0);
    begins(world, CHAOS_FAULT_BUSY, 20);
    begins(world, CHAOS_FAULT_MAXCLIENTS, 0);
    ends(world, CHAOS_FAULT_OOM);
    ends(world, CHAOS_FAULT_BUSY);
    assert_string_equal(answer(world, "PING"), "ERR max number of clients reached");
    ends(world, CHAOS_FAULT_MAXCLIENTS);
    assert_int_equal(world->held, 0);
    assert_string_equal(answer(world, "PING"), "PONG");
    assert_string_equal(answer(world, "CONFIG GET maxclients"), "maxclients 10000");
    ends(world, CHAOS_FAULT_MAXCLIENTS);
    assert_int_equal(world->held, 0);
    redisFree(client);
}

/* A client that forked meanwhile has the held connection too. */
FRESH_TEST(a_held_connection_is_closed_for_all) {
    begins(world, CHAOS_FAULT_MAXCLIENTS, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    ends(world, CHAOS_FAULT_MAXCLIENTS);
    int64_t deadline_ms = support_now_ms() + 10000;
    int count = 0;
    do {
        redisContext *redis = connect_to(world, false);
        redisReply *reply = redisCommand(redis, "INFO clients");
        assert_non_null(reply);
        assert_int_equal(sscanf(strstr(reply->str, "connected_clients:"), "connected_clients:%d", &count), 1);
        freeReplyObject(reply);
        redisFree(redis);
    } while (count > 1 && support_now_ms() < deadline_ms);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(count, 1);
}

FRESH_TEST(a_full_node_may_die_or_hang_meanwhile) {
    struct chaos_backend *backend = world->nodes.backend;
    begins(world, CHAOS_FAULT_MAXCLIENTS, 0);
    assert_true(backend->ops->pause(backend, 0, &world->error));
    assert_false(end(world, CHAOS_FAULT_MAXCLIENTS));
    assert_contains(world->error.text, "no answer within 500 ms");
    assert_true(world->held > 0);
    assert_true(backend->ops->resume(backend, 0, &world->error));
    ends(world, CHAOS_FAULT_MAXCLIENTS);
    assert_int_equal(world->held, 0);
    assert_string_equal(answer(world, "PING"), "PONG");
    begins(world, CHAOS_FAULT_MAXCLIENTS, 0);
    assert_true(backend->ops->kill(backend, 0, &world->error));
    assert_false(end(world, CHAOS_FAULT_MAXCLIENTS));
    assert_contains(world->error.text, "nobody listens there");
    assert_int_equal(world->held, 0);
    assert_true(backend->ops->restart(backend, 0, true, &world->error));
    nodes_await(&world->nodes, 0, "PING", "PONG");
    ends(world, CHAOS_FAULT_MAXCLIENTS);
    assert_int_equal(world->held, 0);
}

FRESH_TEST(a_node_without_memory_denies_sets_only) {
    assert_string_equal(answer(world, "SET k v"), "OK");
    begins(world, CHAOS_FAULT_OOM, 0);
    assert_contains(answer(world, "SET l v NX PX 1000"), "OOM command not allowed");
    assert_string_equal(answer(world, "EVAL return(redis.call('DEL',KEYS[1])) 1 k"), "1");
    assert_string_equal(answer(world, "GET k"), "(nil)");
    ends(world, CHAOS_FAULT_OOM);
    assert_string_equal(answer(world, "SET l v NX PX 1000"), "OK");
}

FRESH_TEST(another_password_keeps_clients_out) {
    redisContext *client = connect_to(world, false), *auditor = connect_to(world, true);
    begins(world, CHAOS_FAULT_PASSWORD, 0);
    assert_false(lives(client));
    assert_true(lives(auditor));
    assert_contains(answer(world, "SET k v"), "NOAUTH");
    assert_true(chaos_admin_ping(port_of(world), &world->error));
    ends(world, CHAOS_FAULT_PASSWORD);
    assert_string_equal(answer(world, "SET k v"), "OK");
    redisFree(client);
    redisFree(auditor);
}

FRESH_TEST(what_is_no_question_is_refused) {
    assert_false(begin(world, CHAOS_FAULT_PARTITION, 0));
    assert_contains(world->error.text, "none that a node can be asked for");
    ends(world, CHAOS_FAULT_PARTITION);
}

FRESH_TEST(a_user_without_rights_is_told_so) {
    assert_string_equal(answer(world, "ACL SETUSER chaos -debug -config"), "OK");
    assert_false(begin(world, CHAOS_FAULT_SLOW, 1000));
    assert_contains(world->error.text, "was asked for DEBUG SLEEP 0 and answered \"NOPERM");
    assert_contains(world->error.text, "; the node's configuration needs a user chaos that may do anything");
    assert_false(begin(world, CHAOS_FAULT_MAXCLIENTS, 0));
    assert_int_equal(world->held, 0);
    assert_string_equal(answer(world, "ACL DELUSER chaos"), "1");
    assert_false(begin(world, CHAOS_FAULT_OOM, 0));
    assert_contains(world->error.text, "was asked for AUTH and answered \"WRONGPASS");
    assert_lacks(world->error.text, "chaos chaos");
}

/* Each question fails with these words, within a bounded time. */
static void all_fail(struct world *world, uint16_t port, const char *words) {
    const enum chaos_fault_kind kinds[] = {CHAOS_FAULT_SLOW,     CHAOS_FAULT_BUSY,       CHAOS_FAULT_SCRIPT_FLUSH,
                                           CHAOS_FAULT_FLUSHALL, CHAOS_FAULT_DISCONNECT, CHAOS_FAULT_MAXCLIENTS,
                                           CHAOS_FAULT_OOM,      CHAOS_FAULT_PASSWORD,   CHAOS_FAULT_UNSUBSCRIBE};
    char version[32];
    int64_t start_ms = support_now_ms();
    size_t asked = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct chaos_fault fault = {.kind = kinds[i], .amount = 10};
        assert_false(chaos_admin_begin(port, &fault, &world->held, &world->error));
        assert_contains(world->error.text, words);
        bool undone = chaos_admin_end(port, &fault, &world->held, &world->error);
        bool undoes = kinds[i] == CHAOS_FAULT_BUSY || kinds[i] >= CHAOS_FAULT_MAXCLIENTS;
        assert_int_equal(undone, !undoes);
        asked += undoes ? 2 : 1;
    }
    assert_false(chaos_admin_ping(port, &world->error));
    assert_int_equal(chaos_admin_key_count(port, true, &world->error), -1);
    assert_false(chaos_admin_version(port, version, sizeof version, &world->error));
    assert_contains(world->error.text, words);
    assert_true(support_now_ms() - start_ms < (int64_t)(asked + 3) * 500 + 10000);
    assert_int_equal(world->held, 0);
}

FRESH_TEST(dead_and_paused_nodes_fail_soon) {
    struct chaos_backend *backend = world->nodes.backend;
    assert_true(backend->ops->pause(backend, 0, &world->error));
    all_fail(world, port_of(world), "no answer within 500 ms; it is paused or busy");
    assert_true(backend->ops->kill(backend, 0, &world->error));
    all_fail(world, port_of(world), "nobody listens there: the node is dead");
}

/* A listener that accepts connections. If it has a text, it sends it and closes them. */
static pid_t start_stranger(const char *text, uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            char request[256];
            int peer = accept(fd, NULL, NULL);
            if (text != NULL) {
                (void)!read(peer, request, sizeof request);
                (void)!write(peer, text, strlen(text));
                close(peer);
            }
        }
    }
    close(fd);
    return child;
}

FRESH_TEST(strangers_do_no_harm) {
    const char *const texts[][2] = {{NULL, "no answer within 500 ms"},
                                    {"", "the connection was closed before the answer"},
                                    {"HTTP/1.1 400 Bad Request\r\n\r\n", "Protocol error"},
                                    {"+OK\r\n", "the connection was closed before the answer"},
                                    {"-ERR max number of clients reached\r\n", "max number of clients reached"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint16_t port;
        pid_t child = start_stranger(texts[i][0], &port);
        all_fail(world, port, texts[i][1]);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
}
