/* The compose backend with real containers. test/compose/docker.sh runs it: it has a daemon and an
 * image of the nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#undef stop /* a macro of cmocka 2 */
#include <errno.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/admin.h"
#include "backends/backend_compose.h"

enum { NODES = 3, WAIT_MS = 60000 };

static char root[] = "/tmp/redlock-compose.XXXXXX";
static char directory[96];
static struct chaos_error error;
static const char *compose_file, *shim;

static struct chaos_backend *create(size_t nodes) {
    struct chaos_backend_options options = {
        .nodes = nodes, .append_only = true, .directory = directory, .shim = shim, .compose_file = compose_file};
    error.text[0] = '\0';
    return chaos_backend_create("compose", &options, &error);
}

static void fail_with_words(const char *what) {
    fail_msg("%s: %s", what, error.text);
}

/* A node's answer as text; "" without one. Asks as the default user, so without a password. */
static const char *ask(uint16_t port, const char *command) {
    static char text[512];
    struct timeval limit = {.tv_sec = 1};
    redisContext *context = redisConnectWithTimeout("127.0.0.1", port, limit);
    redisReply *reply = NULL;
    text[0] = '\0';
    if (context != NULL && context->err == 0 && redisSetTimeout(context, limit) == REDIS_OK) {
        reply = redisCommand(context, command);
    }
    if (reply != NULL) {
        const redisReply *first = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0] : reply;
        if (first->type == REDIS_REPLY_INTEGER) {
            snprintf(text, sizeof text, "%lld", first->integer);
        } else {
            snprintf(text, sizeof text, "%s", first->str != NULL ? first->str : "nil");
        }
        freeReplyObject(reply);
    }
    if (context != NULL) {
        redisFree(context);
    }
    return text;
}

static void wait_until_it_says(uint16_t port, const char *command, const char *wanted) {
    int64_t deadline_ms = chaos_now_ms() + WAIT_MS;
    while (strcmp(ask(port, command), wanted) != 0) {
        if (chaos_now_ms() > deadline_ms) {
            fail_msg("%s at port %d says '%s', not '%s'", command, port, ask(port, command), wanted);
        }
        (void)poll(NULL, 0, 20);
    }
}

/* Everything that docker has with the label of a project, as a text of ids. */
static void list(const char *project, struct chaos_said *said) {
    char filter[128];
    snprintf(filter, sizeof filter, "label=com.docker.compose.project=%s", project);
    CHAOS_DOCKER(said, "ps", "-aq", "--filter", filter);
    if (said->status == 0 && said->text[0] == '\0') {
        CHAOS_DOCKER(said, "network", "ls", "-q", "--filter", filter);
    }
    if (said->status == 0 && said->text[0] == '\0') {
        CHAOS_DOCKER(said, "volume", "ls", "-q", "--filter", filter);
    }
    assert_int_equal(said->status, 0);
}

static struct chaos_backend *nodes;

static int start_nodes(void **state) {
    (void)state;
    nodes = create(NODES);
    if (nodes == NULL || !nodes->ops->start(nodes, &error)) {
        fprintf(stderr, "the nodes do not start: %s\n", error.text);
        return -1;
    }
    return 0;
}

static int stop_nodes(void **state) {
    (void)state;
    chaos_backend_destroy(nodes);
    nodes = NULL;
    return 0;
}

static void nodes_are_as_promised(void **state) {
    (void)state;
    for (size_t n = 0; n < NODES; n++) {
        uint16_t port = nodes->ports[n];
        if (!chaos_admin_ping(port, &error)) {
            fail_with_words("as the user chaos");
        }
        assert_string_equal(ask(port, "PING"), "PONG");
        assert_string_equal(ask(port, "DEBUG SLEEP 0"), "OK");
        assert_string_equal(ask(port, "CONFIG SET maxmemory-policy noeviction"), "OK");
        assert_string_equal(ask(port, "ACL WHOAMI"), "default");
        assert_string_equal(ask(port, "SET key here"), "OK");
        for (size_t other = 0; other < n; other++) {
            assert_int_not_equal(port, nodes->ports[other]);
        }
    }
}

static void a_killed_node_comes_back_with_its_keys(void **state) {
    (void)state;
    uint16_t port = nodes->ports[0];
    assert_string_equal(ask(port, "SET kept yes"), "OK");
    for (int again = 0; again < 2; again++) {
        if (!nodes->ops->kill(nodes, 0, &error)) {
            fail_with_words("kill");
        }
        assert_string_equal(ask(port, "PING"), "");
        assert_false(chaos_admin_ping(port, &error));
    }
    if (nodes->ops->pause(nodes, 0, &error)) {
        fail_msg("a dead node was paused");
    }
    assert_non_null(strstr(error.text, "node 1 is dead"));
    assert_true(nodes->ops->resume(nodes, 0, &error));
    for (int again = 0; again < 2; again++) {
        if (!nodes->ops->restart(nodes, 0, false, &error)) {
            fail_with_words("restart");
        }
        wait_until_it_says(port, "GET kept", "yes");
    }
    /* The node runs, so this empties nothing. */
    assert_true(nodes->ops->restart(nodes, 0, true, &error));
    assert_string_equal(ask(port, "GET kept"), "yes");
    assert_string_equal(ask(nodes->ports[1], "PING"), "PONG");
}

static void a_node_comes_back_empty(void **state) {
    (void)state;
    uint16_t port = nodes->ports[1];
    assert_string_equal(ask(port, "SET kept yes"), "OK");
    if (!nodes->ops->kill(nodes, 1, &error) || !nodes->ops->restart(nodes, 1, true, &error)) {
        fail_with_words("kill and restart");
    }
    wait_until_it_says(port, "PING", "PONG");
    assert_string_equal(ask(port, "DBSIZE"), "0");
    assert_true(chaos_admin_ping(port, &error));
}

static void a_paused_node_is_silent(void **state) {
    (void)state;
    uint16_t port = nodes->ports[2];
    assert_string_equal(ask(port, "SET paused no"), "OK");
    for (int again = 0; again < 2; again++) {
        if (!nodes->ops->pause(nodes, 2, &error)) {
            fail_with_words("pause");
        }
        assert_string_equal(ask(port, "PING"), "");
    }
    /* The node runs, or will soon. */
    assert_true(nodes->ops->restart(nodes, 2, true, &error));
    for (int again = 0; again < 2; again++) {
        if (!nodes->ops->resume(nodes, 2, &error)) {
            fail_with_words("resume");
        }
        wait_until_it_says(port, "GET paused", "no");
    }
    if (!nodes->ops->pause(nodes, 2, &error) || !nodes->ops->kill(nodes, 2, &error)) {
        fail_with_words("kill of a paused node");
    }
    assert_string_equal(ask(port, "PING"), "");
    assert_true(nodes->ops->restart(nodes, 2, false, &error));
    wait_until_it_says(port, "GET paused", "no");
}

/* Returns whether this machine can drop packets. Prints why not. */
static bool can_drop(void) {
    struct chaos_said said = {0};
    if (geteuid() == 0) {
        chaos_program_run((const char *const[]){"iptables", "-w", "5", "-S", "INPUT", NULL}, NULL, -1, CHAOS_DOCKER_MS,
                          &said);
        if (said.status == 0) {
            return true;
        }
    }
    print_message("skipped: packets are not dropped: %s\n",
                  geteuid() != 0 ? "only root can do that" : chaos_said_why(&said));
    return false;
}

static void ask_inside(const char *key, struct chaos_said *said) {
    const struct chaos_compose *compose = nodes->own;
    char script[160];
    snprintf(script, sizeof script, "$(command -v redis-cli || command -v valkey-cli) GET %s", key);
    CHAOS_DOCKER(said, "exec", compose->names[1], "sh", "-c", script);
    assert_int_equal(said->status, 0);
    said->text[strcspn(said->text, "\r\n")] = '\0';
}

/* An open connection meets packet loss. What it sends comes late, when the kernel sends it again.
 * The node still works from inside. */
static void packets_are_lost(void **state) {
    (void)state;
    if (!can_drop()) {
        skip();
    }
    uint16_t port = nodes->ports[1];
    struct chaos_said said;
    redisContext *context = redisConnectWithTimeout("127.0.0.1", port, (struct timeval){.tv_sec = 10});
    assert_true(context != NULL && context->err == 0);
    assert_int_equal(redisSetTimeout(context, (struct timeval){.tv_sec = WAIT_MS / 1000}), REDIS_OK);
    redisReply *reply = redisCommand(context, "SET lost no");
    assert_non_null(reply);
    freeReplyObject(reply);
    for (int again = 0; again < 2; again++) {
        if (!nodes->ops->lose(nodes, 1, true, &error)) {
            fail_with_words("drop");
        }
        assert_string_equal(ask(port, "PING"), "");
    }
    int done = 0;
    assert_int_equal(redisAppendCommand(context, "SET lost yes"), REDIS_OK);
    assert_int_equal(redisBufferWrite(context, &done), REDIS_OK);
    assert_true(done);
    assert_string_equal(ask(port, "GET lost"), "");
    ask_inside("lost", &said);
    assert_string_equal(said.text, "no");
    assert_string_equal(ask(nodes->ports[0], "PING"), "PONG");
    for (int again = 0; again < 2; again++) {
        if (!nodes->ops->lose(nodes, 1, false, &error)) {
            fail_with_words("pass");
        }
    }
    assert_int_equal(redisGetReply(context, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    redisFree(context);
    wait_until_it_says(port, "GET lost", "yes");
}

/* A restart removes the node's rules. */
static void a_restart_ends_the_loss(void **state) {
    (void)state;
    if (!can_drop()) {
        skip();
    }
    uint16_t port = nodes->ports[1];
    for (int early = 0; early < 2; early++) {
        if (!nodes->ops->lose(nodes, 1, true, &error) || !nodes->ops->kill(nodes, 1, &error)) {
            fail_with_words("drop and kill");
        }
        assert_true(!early || nodes->ops->lose(nodes, 1, false, &error));
        assert_false(nodes->ops->lose(nodes, 1, true, &error));
        assert_non_null(strstr(error.text, "node 2 is dead"));
        assert_true(nodes->ops->restart(nodes, 1, false, &error));
        wait_until_it_says(port, "PING", "PONG");
        if (!nodes->ops->lose(nodes, 1, false, &error)) {
            fail_with_words("pass, after a restart");
        }
        assert_string_equal(ask(port, "PING"), "PONG");
    }
}

static long long clock_error_s(size_t node) {
    struct timespec now;
    long long seconds = atoll(ask(nodes->ports[node], "TIME"));
    clock_gettime(CLOCK_REALTIME, &now);
    return seconds - (long long)now.tv_sec;
}

static void a_clock_jumps(void **state) {
    (void)state;
    assert_in_range(clock_error_s(0) + 30, 0, 60);
    chaos_clock_jump(nodes->clocks[0], 3600 * 1000);
    assert_in_range(clock_error_s(0), 3570, 3630);
    assert_in_range(clock_error_s(1) + 30, 0, 60);
    assert_true(nodes->ops->kill(nodes, 0, &error));
    assert_true(nodes->ops->restart(nodes, 0, false, &error));
    wait_until_it_says(nodes->ports[0], "PING", "PONG");
    assert_in_range(clock_error_s(0), 3570, 3630);
    chaos_clock_jump(nodes->clocks[0], -3600 * 1000);
    assert_in_range(clock_error_s(0) + 30, 0, 60);
}

static void nothing_is_left(void **state) {
    (void)state;
    struct chaos_said said;
    char project[64], path[256];
    const struct chaos_compose *compose = nodes->own;
    snprintf(project, sizeof project, "%s", compose->project);
    list(project, &said);
    assert_string_not_equal(said.text, "");
    assert_true(nodes->ops->stop(nodes, &error));
    list(project, &said);
    assert_string_equal(said.text, "");
    snprintf(path, sizeof path, "%s/node-%d/log", directory, NODES);
    struct stat stat_;
    assert_int_equal(stat(path, &stat_), 0);
    assert_true(stat_.st_size > 0);
    assert_true(nodes->ops->stop(nodes, &error)); /* a second stop does nothing */
}

/* A process makes nodes and dies by SIGKILL, at once or in the middle. */
static void nothing_outlives_its_maker(void **state) {
    (void)state;
    for (int early = 0; early < 2; early++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct chaos_backend *backend = create(2);
            const struct chaos_compose *compose = backend == NULL ? NULL : backend->own;
            ssize_t written = compose == NULL ? 0 : write(fds[1], compose->project, sizeof compose->project);
            if (written <= 0 || !backend->ops->start(backend, &error) || write(fds[1], "", 1) != 1) {
                fprintf(stderr, "the nodes do not start: %s\n", error.text);
                _exit(1);
            }
            for (;;) {
                (void)pause();
            }
        }
        close(fds[1]);
        char project[64] = "", byte;
        assert_int_equal(read(fds[0], project, sizeof project), sizeof project);
        struct chaos_said said = {0};
        int64_t deadline_ms = chaos_now_ms() + WAIT_MS;
        if (early) {
            /* As soon as docker shows anything of the project. */
            while (said.text[0] == '\0' && chaos_now_ms() < deadline_ms) {
                list(project, &said);
            }
        } else {
            assert_int_equal(read(fds[0], &byte, 1), 1);
            list(project, &said);
        }
        assert_string_not_equal(said.text, "");
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        close(fds[0]);
        for (int quiet = 0; quiet < 5;) {
            list(project, &said);
            quiet = said.text[0] == '\0' ? quiet + 1 : 0;
            if (chaos_now_ms() > deadline_ms) {
                fail_msg("this outlived its maker: %s", said.text);
            }
            (void)poll(NULL, 0, 100);
        }
    }
}

static void expect_refusal(const char *words) {
    struct chaos_backend *backend = create(NODES);
    if (backend != NULL) {
        chaos_backend_destroy(backend);
        fail_msg("this should have been refused with words like: %s", words);
    }
    if (strstr(error.text, words) == NULL) {
        fail_msg("it says '%s', which has nothing of '%s'", error.text, words);
    }
}

static char *saved(const char *name) {
    const char *value = getenv(name);
    return value == NULL ? NULL : strdup(value);
}

static void restore(const char *name, char *value) {
    if (value == NULL) {
        unsetenv(name);
    } else {
        setenv(name, value, 1);
    }
    free(value);
}

static void what_is_missing_is_said(void **state) {
    (void)state;
    char *path = saved("PATH"), *host = saved("DOCKER_HOST"), *image = saved("REDLOCK_NODE_IMAGE");
    const char *file = compose_file;
    compose_file = "/nowhere/docker-compose.yml";
    expect_refusal("/nowhere/docker-compose.yml: No such file");
    compose_file = "/etc/hostname";
    expect_refusal("is not sound");
    compose_file = file;
    setenv("PATH", "/nowhere", 1);
    expect_refusal("there is no program docker");
    setenv("PATH", path, 1);
    setenv("DOCKER_HOST", "unix:///nowhere/docker.sock", 1);
    expect_refusal("the Docker daemon does not answer");
    restore("DOCKER_HOST", host);
    setenv("REDLOCK_NODE_IMAGE", "redlock-test-none", 1);
    expect_refusal("the image redlock-test-none:");
    restore("REDLOCK_NODE_IMAGE", image);
    restore("PATH", path);
    assert_null(create(6));
    assert_non_null(strstr(error.text, "has no service node6"));
}

/* Starts this many nodes, and ends them. */
static bool starts(size_t count) {
    struct chaos_backend *backend = create(count);
    bool started = backend != NULL && backend->ops->start(backend, &error);
    chaos_backend_destroy(backend);
    return started;
}

/* The loader skips a library that it cannot load. Its warning goes unread. */
static void a_clock_that_is_not_loaded_is_found(void **state) {
    (void)state;
    const char *usual = shim;
    shim = "/etc/hostname";
    bool started = starts(1);
    shim = usual;
    assert_false(started);
    if (strstr(error.text, "node 1: its clock cannot be moved") == NULL) {
        fail_with_words("it does not say why");
    }
}

/* An image whose program ends at once. */
static void a_node_that_ends_is_quoted(void **state) {
    (void)state;
    const char *tool = getenv("REDLOCK_TOOL_IMAGE");
    char *image = saved("REDLOCK_NODE_IMAGE"), *version = saved("REDLOCK_NODE_VERSION"), name[128] = "";
    if (tool == NULL || strchr(tool, ':') == NULL) {
        skip();
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)(strchr(tool, ':') - tool), tool);
    setenv("REDLOCK_NODE_IMAGE", name, 1);
    setenv("REDLOCK_NODE_VERSION", strchr(tool, ':') + 1, 1);
    const char *usual = shim;
    shim = NULL;
    bool started = starts(1);
    shim = usual;
    restore("REDLOCK_NODE_IMAGE", image);
    restore("REDLOCK_NODE_VERSION", version);
    assert_false(started);
    if (strstr(error.text, "node 1 ended at its start") == NULL || strstr(error.text, "--protected-mode") == NULL) {
        fail_with_words("it does not say why");
    }
}

static int remove_entry(const char *path, const struct stat *stat_, int type, struct FTW *where) {
    (void)stat_;
    (void)type;
    (void)where;
    return remove(path);
}

int main(void) {
    compose_file = getenv("REDLOCK_COMPOSE_FILE");
    shim = getenv("REDLOCK_CHAOS_SHIM");
    if (compose_file == NULL || shim == NULL || mkdtemp(root) == NULL || chmod(root, 0755) != 0) {
        fprintf(stderr, "REDLOCK_COMPOSE_FILE and REDLOCK_CHAOS_SHIM must be set, and a directory be made in /tmp\n");
        return 1;
    }
    snprintf(directory, sizeof directory, "%s/a run's \"own\" $HOME ${x} é", root);
    if (mkdir(directory, 0755) != 0) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_as_promised),   cmocka_unit_test(a_killed_node_comes_back_with_its_keys),
        cmocka_unit_test(a_node_comes_back_empty), cmocka_unit_test(a_paused_node_is_silent),
        cmocka_unit_test(packets_are_lost),        cmocka_unit_test(a_restart_ends_the_loss),
        cmocka_unit_test(a_clock_jumps),           cmocka_unit_test(nothing_is_left)};
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(nothing_outlives_its_maker), cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(a_clock_that_is_not_loaded_is_found), cmocka_unit_test(a_node_that_ends_is_quoted)};
    int failures = cmocka_run_group_tests_name("nodes in containers", tests, start_nodes, stop_nodes);
    failures += cmocka_run_group_tests_name("their maker", alone, NULL, NULL);
    (void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return failures != 0;
}
