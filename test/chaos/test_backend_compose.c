/* The compose backend with real containers. test/compose/docker.sh runs it: it has a daemon and an
 * image of the nodes. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"
#undef stop /* a macro of cmocka 2 */
#include "backends/admin.h"
#include "backends/program.h"
#include "node_kit.h"
#include "values/clock.h"

enum { NODES = 3, WAIT_MS = 60000 };

static struct nodes all, *nodes = &all;
static char directory[128];

#define RUN(said, ...) chaos_program_run((const char *const[]){__VA_ARGS__, NULL}, NULL, -1, WAIT_MS, (said))

/* In a directory of an odd name, which others may read. */
static void prepare(size_t count) {
    nodes->kind = "compose";
    strcpy(nodes->directory, "/tmp/redlock-compose.XXXXXX");
    assert_non_null(mkdtemp(nodes->directory));
    assert_int_equal(chmod(nodes->directory, 0755), 0);
    const int length = snprintf(directory, sizeof directory, "%s/a run's \"own\" $HOME ${x} é", nodes->directory);
    assert_in_range(length, 1, sizeof directory - 1);
    assert_int_equal(mkdir(directory, 0755), 0);
    nodes->options = (struct chaos_backend_options){.nodes = count,
                                                    .append_only = true,
                                                    .directory = directory,
                                                    .shim = getenv("REDLOCK_CHAOS_SHIM"),
                                                    .compose_file = getenv("REDLOCK_COMPOSE_FILE")};
}

static int start_nodes(UNUSED void **state) {
    prepare(NODES);
    nodes_start(nodes);
    return 0;
}

static int prepare_alone(UNUSED void **state) {
    prepare(1);
    return 0;
}

static int stop_nodes(UNUSED void **state) {
    nodes_stop(nodes);
    return 0;
}

/* All that docker has of the runs of a process, as a text of ids. */
static const char *list(pid_t maker) {
    static struct chaos_said said;
    static const char *const kinds[] = {"container", "network", "volume"};
    char filter[64];
    snprintf(filter, sizeof filter, "name=redlock-chaos-%d-", (int)maker);
    said.text[0] = '\0';
    for (size_t k = 0; k < 3 && said.text[0] == '\0'; k++) {
        RUN(&said, "docker", kinds[k], "ls", "-q", "--filter", filter, k == 0 ? "-a" : NULL);
        assert_int_equal(said.status, 0);
    }
    return said.text;
}

TESTS_WITH(start_nodes, stop_nodes);

TEST(nodes_are_as_promised) {
    for (size_t n = 0; n < NODES; n++) {
        assert_true(chaos_admin_ping(nodes->backend->ports[n], &nodes->error));
        assert_string_equal(nodes_ask(nodes, n, "DEBUG SLEEP 0"), "OK");
        assert_string_equal(nodes_ask(nodes, n, "CONFIG GET maxmemory-policy"), "maxmemory-policy noeviction");
        assert_string_equal(nodes_ask(nodes, n, "CONFIG GET appendfsync"), "appendfsync always");
        assert_string_equal(nodes_ask(nodes, n, "ACL WHOAMI"), "default");
    }
}

TEST(a_killed_node_comes_back_with_its_keys) {
    assert_string_equal(nodes_ask(nodes, 0, "SET kept yes"), "OK");
    WORKS(kill, 0);
    assert_string_equal(nodes_ask(nodes, 0, "PING"), "no answer");
    WORKS(kill, 0);
    WORKS(resume, 0);
    assert_false(CALL(pause, 0));
    assert_contains(nodes->error.text, "node 1 is dead");
    WORKS(restart, 0, false);
    nodes_await(nodes, 0, "GET kept", "yes");
    WORKS(restart, 0, true); /* it runs, so this empties nothing */
    assert_string_equal(nodes_ask(nodes, 0, "GET kept"), "yes");
    WORKS(kill, 0);
    WORKS(restart, 0, true);
    nodes_await(nodes, 0, "DBSIZE", "0");
    assert_true(chaos_admin_ping(nodes->backend->ports[0], &nodes->error));
    assert_string_equal(nodes_ask(nodes, 1, "PING"), "PONG");
}

TEST(a_paused_node_is_silent) {
    assert_string_equal(nodes_ask(nodes, 2, "SET paused no"), "OK");
    WORKS(pause, 2);
    WORKS(pause, 2);
    assert_string_equal(nodes_ask(nodes, 2, "PING"), "no answer");
    WORKS(restart, 2, true); /* it runs, or will soon */
    WORKS(resume, 2);
    WORKS(resume, 2);
    nodes_await(nodes, 2, "GET paused", "no");
    WORKS(pause, 2);
    WORKS(kill, 2);
    assert_string_equal(nodes_ask(nodes, 2, "PING"), "no answer");
    WORKS(restart, 2, false);
    nodes_await(nodes, 2, "GET paused", "no");
}

static int needs_iptables(UNUSED void **state) {
    struct chaos_said said = {.status = 1};
    if (geteuid() == 0) {
        RUN(&said, "iptables", "-w", "5", "-S", "INPUT");
    }
    if (said.status != 0) {
        print_message("skipped: packets are dropped by iptables, and root\n");
        skip();
    }
    return 0;
}

/* What an open connection sends comes late, when the kernel sends it again; the node still works
 * from inside. */
TEST(packets_are_lost) {
    (void)needs_iptables(NULL);
    struct chaos_said said;
    char publish[32], script[200];
    redisContext *context = redisConnectWithTimeout("127.0.0.1", nodes->backend->ports[1], (struct timeval){10, 0});
    assert_true(context != NULL && context->err == 0);
    assert_int_equal(redisSetTimeout(context, (struct timeval){WAIT_MS / 1000, 0}), REDIS_OK);
    assert_string_equal(nodes_ask(nodes, 1, "SET lost no"), "OK");
    WORKS(lose, 1, true);
    WORKS(lose, 1, true);
    int done = 0;
    assert_int_equal(redisAppendCommand(context, "SET lost yes"), REDIS_OK);
    assert_int_equal(redisBufferWrite(context, &done), REDIS_OK);
    assert_true(done);
    assert_string_equal(nodes_ask(nodes, 1, "GET lost"), "no answer");
    snprintf(publish, sizeof publish, "publish=%u", nodes->backend->ports[1]);
    snprintf(
        script, sizeof script,
        "docker exec $(docker ps -q --filter %s) sh -c '$(command -v redis-cli || command -v valkey-cli) GET lost'",
        publish);
    RUN(&said, "sh", "-c", script);
    assert_string_equal(said.text, "no\n");
    assert_string_equal(nodes_ask(nodes, 0, "PING"), "PONG");
    WORKS(lose, 1, false);
    WORKS(lose, 1, false);
    redisReply *reply;
    assert_int_equal(redisGetReply(context, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(context);
    nodes_await(nodes, 1, "GET lost", "yes");
}

TEST(a_restart_ends_the_loss) {
    (void)needs_iptables(NULL);
    WORKS(lose, 1, true);
    WORKS(kill, 1);
    WORKS(lose, 1, false);
    assert_false(CALL(lose, 1, true));
    assert_contains(nodes->error.text, "node 2 is dead");
    WORKS(restart, 1, false);
    nodes_await(nodes, 1, "PING", "PONG");
    WORKS(lose, 1, false);
    assert_string_equal(nodes_ask(nodes, 1, "PING"), "PONG");
}

static void assert_ahead_s(size_t node, int64_t seconds) {
    int64_t ahead_s = chaos_admin_time_s(nodes->backend->ports[node]) - (int64_t)time(NULL);
    assert_in_range(ahead_s - seconds + 30, 0, 60);
}

TEST(a_clock_jumps) {
    assert_ahead_s(0, 0);
    chaos_clock_jump(nodes->backend->clocks[0], 3600 * 1000);
    assert_ahead_s(0, 3600);
    assert_ahead_s(1, 0);
    WORKS(kill, 0);
    WORKS(restart, 0, false);
    nodes_await(nodes, 0, "PING", "PONG");
    assert_ahead_s(0, 3600);
    chaos_clock_jump(nodes->backend->clocks[0], -3600 * 1000);
    assert_ahead_s(0, 0);
}

TEST(nothing_is_left) {
    char path[160];
    struct stat log;
    assert_string_not_equal(list(getpid()), "");
    assert_true(nodes->backend->ops->stop(nodes->backend, &nodes->error));
    assert_string_equal(list(getpid()), "");
    snprintf(path, sizeof path, "%s/node-%d/log", directory, NODES);
    assert_int_equal(stat(path, &log), 0);
    assert_true(log.st_size > 0);
    assert_true(nodes->backend->ops->stop(nodes->backend, &nodes->error)); /* nothing happens */
}

TESTS_WITH(NULL, NULL);
#define ALONE_TEST(name) TEST_WITH(name, prepare_alone, stop_nodes)

/* A process makes nodes and dies by SIGKILL: as soon as docker shows anything of it, or later. */
static void dies(bool early) {
    int fds[2];
    char byte;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        nodes_start(nodes);
        (void)!write(fds[1], "", 1);
        for (;;) {
            (void)pause();
        }
    }
    close(fds[1]);
    int64_t deadline_ms = tool_now_ms() + WAIT_MS;
    while (early && list(pid)[0] == '\0' && tool_now_ms() < deadline_ms) {
    }
    assert_int_equal(early || read(fds[0], &byte, 1), 1);
    assert_string_not_equal(list(pid), "");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(fds[0]);
    for (int quiet = 0; quiet < 5;) {
        quiet = list(pid)[0] == '\0' ? quiet + 1 : 0;
        assert_true(tool_now_ms() < deadline_ms);
        support_pause_ms(100);
    }
}

ALONE_TEST(nothing_outlives_its_maker) {
    dies(true);
    dies(false);
}

static void refused(const char *words) {
    assert_false(nodes_create(nodes));
    assert_contains(nodes->error.text, words);
}

/* With another value of a variable. */
static void refused_with(const char *name, const char *value, const char *words) {
    const char *usual = getenv(name);
    char *kept = usual == NULL ? NULL : strdup(usual);
    setenv(name, value, 1);
    refused(words);
    assert_int_equal(kept == NULL ? unsetenv(name) : setenv(name, kept, 1), 0);
    free(kept);
}

ALONE_TEST(what_is_missing_is_said) {
    refused_with("PATH", "/nowhere", "there is no program docker");
    refused_with("DOCKER_HOST", "unix:///nowhere/docker.sock", "the Docker daemon does not answer");
    refused_with("REDLOCK_NODE_IMAGE", "redlock-test-none", "the image redlock-test-none:");
    nodes->options.nodes = 6;
    refused("has no service node6");
    nodes->options.compose_file = "/etc/hostname";
    refused("is not sound");
    nodes->options.compose_file = "/nowhere/docker-compose.yml";
    refused("/nowhere/docker-compose.yml: No such file");
}

static void start_fails(const char *words) {
    if (!nodes_create(nodes)) {
        fail_msg("%s", nodes->error.text);
    }
    assert_false(nodes->backend->ops->start(nodes->backend, &nodes->error));
    assert_contains(nodes->error.text, words);
}

/* The loader skips a library that it cannot load. Its warning goes unread. */
ALONE_TEST(a_clock_that_is_not_loaded_is_found) {
    nodes->options.shim = "/etc/hostname";
    start_fails("node 1: its clock cannot be moved");
}

/* Of an image whose program ends at once. */
ALONE_TEST(a_node_that_ends_is_quoted) {
    static char path[1200];
    snprintf(path, sizeof path, "%s/docker-compose.yml", nodes->directory);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fprintf(out, "services:\n  node1:\n    image: ${REDLOCK_NODE_IMAGE}:${REDLOCK_NODE_VERSION}\n"
                 "    entrypoint: [sh, -c, 'echo Not today; exit 1']\n");
    assert_int_equal(fclose(out), 0);
    nodes->options.compose_file = path;
    start_fails("node 1 ended at its start");
    assert_contains(nodes->error.text, "it said: Not today");
}
