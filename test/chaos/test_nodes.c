/* Nodes as processes: start, kill, restart, pause and end, errors of servers, and their clocks. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"
#undef stop /* a macro of cmocka 2 */
#include "backends/admin.h"
#include "node_kit.h"

static int set_up(void **state) {
    static struct nodes nodes;
    *state = &nodes;
    return 0;
}

static int tear_down(void **state) {
    nodes_stop(*state);
    return 0;
}

static int before(UNUSED void **state) {
    (void)signal(SIGPIPE, SIG_IGN);
    return 0;
}

TESTS_WITH(before, NULL);
#define FRESH_TEST(name) TEST_HAS(name, set_up, tear_down, NULL, (*state), UNUSED struct nodes *nodes)

FRESH_TEST(five_start_and_answer) {
    int low = 0, high = 0;
    FILE *range = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    assert_non_null(range);
    assert_int_equal(fscanf(range, "%d %d", &low, &high), 2);
    fclose(range);
    nodes->options = (struct chaos_backend_options){.nodes = 5, .shim = CLOCK_SHIM};
    nodes_start(nodes);
    for (size_t n = 0; n < 5; n++) {
        char version[64];
        assert_true(chaos_admin_version(nodes->backend->ports[n], version, sizeof version, &nodes->error));
        assert_true(strncmp(version, "redis ", 6) == 0 || strncmp(version, "valkey ", 7) == 0);
        assert_true(nodes->backend->pids[n] > 0);
        assert_int_not_equal(getpgid((pid_t)nodes->backend->pids[n]), getpgid(0));
        assert_true(nodes->backend->ports[n] < low || nodes->backend->ports[n] > high);
        assert_string_equal(nodes_ask(nodes, n, "DEBUG SLEEP 0"), "OK");
        assert_string_equal(nodes_ask(nodes, n, "CONFIG GET appendonly"), "appendonly no");
        assert_string_equal(nodes_ask(nodes, n, "CONFIG GET maxmemory-policy"), "maxmemory-policy noeviction");
        assert_string_equal(nodes_ask(nodes, n, "CONFIG GET save"), "save ");
        for (size_t m = 0; m < n; m++) {
            assert_int_not_equal(nodes->backend->ports[m], nodes->backend->ports[n]);
        }
    }
    assert_int_equal(nodes_children(), 5);
}

/* A node gets neither the terminal's signals, nor the parent's blocked signals and open files. */
FRESH_TEST(a_server_inherits_nothing) {
    sigset_t set, old;
    char path[64], line[256];
    unsigned long long blocked = 1;
    int leak = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(leak >= 0);
    sigfillset(&set);
    assert_int_equal(sigprocmask(SIG_SETMASK, &set, &old), 0);
    nodes_start(nodes);
    assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    snprintf(path, sizeof path, "/proc/%d/status", (int)nodes->backend->pids[0]);
    FILE *in = fopen(path, "re");
    assert_non_null(in);
    while (fgets(line, sizeof line, in) != NULL) {
        (void)sscanf(line, "SigBlk: %llx", &blocked);
    }
    fclose(in);
    assert_int_equal(blocked, 0);
    char mine[64], its[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", leak);
    ssize_t length = readlink(path, mine, sizeof mine - 1);
    assert_true(length > 0);
    mine[length] = '\0';
    for (int fd = 0; fd < 64; fd++) {
        snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)nodes->backend->pids[0], fd);
        length = readlink(target, its, sizeof its - 1);
        its[length > 0 ? length : 0] = '\0';
        assert_string_not_equal(its, mine);
    }
    close(leak);
}

FRESH_TEST(killed_nodes_come_back_with_their_aof) {
    nodes->options = (struct chaos_backend_options){.nodes = 2, .append_only = true};
    nodes_start(nodes);
    uint16_t port = nodes->backend->ports[1];
    pid_t pid = (pid_t)nodes->backend->pids[1];
    assert_string_equal(nodes_ask(nodes, 1, "SET k v PX 600000"), "OK");
    WORKS(kill, 1);
    assert_int_equal(nodes_process_state(pid), 0);
    assert_int_equal(nodes->backend->pids[1], 0);
    assert_string_equal(nodes_ask(nodes, 1, "PING"), "no answer");
    WORKS(kill, 1);
    WORKS(resume, 1);
    assert_false(CALL(pause, 1));
    assert_contains(nodes->error.text, "node 2 (127.0.0.1:");
    assert_contains(nodes->error.text, "dead");
    WORKS(restart, 1, false);
    nodes_await(nodes, 1, "GET k", "v");
    assert_int_equal(nodes->backend->ports[1], port);
    pid = (pid_t)nodes->backend->pids[1];
    WORKS(restart, 1, true);
    assert_int_equal(nodes->backend->pids[1], pid);
    assert_string_equal(nodes_ask(nodes, 1, "GET k"), "v");
    WORKS(kill, 1);
    WORKS(restart, 1, true);
    nodes_await(nodes, 1, "GET k", "(nil)");
    assert_string_equal(nodes_ask(nodes, 0, "DBSIZE"), "0");
}

FRESH_TEST(without_an_aof_they_come_back_empty) {
    nodes_start(nodes);
    assert_string_equal(nodes_ask(nodes, 0, "SET k v"), "OK");
    WORKS(kill, 0);
    WORKS(restart, 0, false);
    nodes_await(nodes, 0, "GET k", "(nil)");
}

FRESH_TEST(paused_nodes_hang) {
    nodes_start(nodes);
    pid_t pid = (pid_t)nodes->backend->pids[0];
    WORKS(pause, 0);
    assert_int_equal(nodes_process_state(pid), 'T');
    WORKS(pause, 0);
    WORKS(restart, 0, true);
    assert_int_equal(nodes->backend->pids[0], pid);
    int64_t start_ms = support_now_ms();
    assert_false(chaos_admin_ping(nodes->backend->ports[0], &nodes->error));
    assert_in_range(support_now_ms() - start_ms, 400, 5000);
    assert_contains(nodes->error.text, "no answer within 500 ms");
    /* The backend has consumed the stop. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG | WUNTRACED), 0);
    WORKS(resume, 0);
    WORKS(resume, 0);
    nodes_await(nodes, 0, "PING", "PONG");
    WORKS(pause, 0);
    WORKS(kill, 0);
    assert_int_equal(nodes_process_state(pid), 0);
    WORKS(restart, 0, false);
    nodes_await(nodes, 0, "PING", "PONG");
    WORKS(pause, 0); /* the teardown ends a paused node */
}

FRESH_TEST(packets_of_processes_are_not_dropped) {
    nodes_start(nodes);
    assert_false(CALL(lose, 0, true));
    assert_contains(nodes->error.text, "node 1 (127.0.0.1:");
    assert_contains(nodes->error.text, "use --backend compose");
    WORKS(lose, 0, false);
    assert_string_equal(nodes_ask(nodes, 0, "PING"), "PONG");
}

FRESH_TEST(one_that_ended_by_itself_is_the_callers) {
    nodes_start(nodes);
    pid_t pid = (pid_t)nodes->backend->pids[0];
    assert_int_equal(kill(pid, SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    WORKS(kill, 0);
    int status;
    assert_int_equal(waitpid(-1, &status, WNOHANG), pid);
    assert_true(WIFSIGNALED(status));
    WORKS(restart, 0, false);
    nodes_await(nodes, 0, "PING", "PONG");
    /* The caller may also wait for the exit before the backend sees it. */
    pid = (pid_t)nodes->backend->pids[0];
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(-1, &status, 0), pid);
    WORKS(kill, 0);
    assert_false(CALL(pause, 0));
}

FRESH_TEST(nothing_outlives_its_maker) {
    int fds[2];
    int64_t pids[3];
    assert_int_equal(pipe(fds), 0);
    strcpy(nodes->directory, "/tmp/redlock nodes:XXXXXX");
    assert_non_null(mkdtemp(nodes->directory));
    nodes->options.nodes = 3;
    pid_t maker = fork();
    assert_true(maker >= 0);
    if (maker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!nodes_create(nodes) || !nodes->backend->ops->start(nodes->backend, &nodes->error) ||
            !nodes->backend->ops->pause(nodes->backend, 1, &nodes->error)) {
            fprintf(stderr, "%s\n", nodes->error.text);
            _exit(1);
        }
        (void)!write(fds[1], nodes->backend->pids, sizeof pids);
        for (;;) {
            pause();
        }
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], pids, sizeof pids), sizeof pids);
    close(fds[0]);
    assert_int_equal(kill(maker, SIGKILL), 0);
    assert_int_equal(waitpid(maker, NULL, 0), maker);
    int64_t deadline_ms = support_now_ms() + 10000;
    for (size_t i = 0; i < 3; i++) {
        char state_now;
        while ((state_now = nodes_process_state((pid_t)pids[i])) != 0 && state_now != 'Z') {
            assert_true(support_now_ms() < deadline_ms);
            support_pause_ms(1);
        }
    }
}

FRESH_TEST(stopping_leaves_logs_only) {
    char path[128], command[256];
    nodes->options = (struct chaos_backend_options){.append_only = true, .shim = CLOCK_SHIM};
    nodes_start(nodes);
    assert_string_equal(nodes_ask(nodes, 0, "SET k v"), "OK");
    assert_true(nodes->backend->ops->stop(nodes->backend, &nodes->error));
    assert_true(nodes->backend->ops->stop(nodes->backend, &nodes->error));
    snprintf(command, sizeof command, "ls -A '%s/node-1' | tr '\\n' ' '", nodes->directory);
    FILE *in = popen(command, "r");
    assert_non_null(in);
    assert_non_null(fgets(path, sizeof path, in));
    assert_int_equal(pclose(in), 0);
    assert_string_equal(path, "log redis.conf ");
}

FRESH_TEST(creating_says_what_is_wrong) {
    struct chaos_backend_options *options = &nodes->options;
    struct chaos_error error;
    options->nodes = 1;
    options->directory = "/tmp";
    assert_null(chaos_backend_create("podman", options, &error));
    assert_contains(error.text, "there is no backend podman; there are process and compose");
    options->nodes = 0;
    assert_null(chaos_backend_create("process", options, &error));
    options->nodes = 32;
    assert_null(chaos_backend_create("process", options, &error));
    assert_contains(error.text, "32 nodes cannot be started; 1 to 31 can");
    options->nodes = 1;
    options->server = "no-such-server";
    assert_null(chaos_backend_create("process", options, &error));
    assert_contains(error.text, "no program no-such-server was found in PATH; install one");
    options->server = "/nonexistent/redis-server";
    assert_null(chaos_backend_create("process", options, &error));
    assert_contains(error.text, "the server program /nonexistent/redis-server cannot be run: No such file");
    options->server = "echo";
    assert_null(chaos_backend_create("process", options, &error));
    assert_contains(error.text, "is no Redis or Valkey server");
    options->server = NULL;
    options->shim = "/nonexistent/clock.so";
    assert_null(chaos_backend_create("process", options, &error));
    assert_contains(error.text, "the clock /nonexistent/clock.so, which is to be preloaded");
    chaos_backend_destroy(NULL);
}

/* Writes this script as the server program. $REDIS is the real program's name. */
static const char *make_script(struct nodes *nodes, const char *text) {
    static char path[128];
    if (nodes->directory[0] == '\0') {
        strcpy(nodes->directory, "/tmp/redlock nodes:XXXXXX");
        assert_non_null(mkdtemp(nodes->directory));
    }
    snprintf(path, sizeof path, "%s/server", nodes->directory);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fprintf(out, "#!/bin/sh\nREDIS=$(command -v redis-server || command -v valkey-server)\n%s\n", text);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, 0700), 0);
    return path;
}

static void start_fails(struct nodes *nodes, const char *words) {
    if (!nodes_create(nodes)) {
        fail_msg("%s", nodes->error.text);
    }
    assert_false(nodes->backend->ops->start(nodes->backend, &nodes->error));
    assert_contains(nodes->error.text, words);
}

FRESH_TEST(a_server_that_ends_at_once_is_quoted) {
    nodes->options.server = make_script(nodes, "[ \"$1\" != --version ] || exec $REDIS --version\n"
                                               "echo first; echo 'Cannot do this today'; exit 3");
    nodes->options.nodes = 2;
    start_fails(nodes, "the server ended as soon as it was started; its log, ");
    assert_contains(nodes->error.text, "node 1 (127.0.0.1:");
    assert_contains(nodes->error.text, "/node-1/log, ends: first|Cannot do this today");
}

FRESH_TEST(an_old_server_is_refused) {
    nodes->options.server = make_script(nodes, "echo 'Redis server v=5.0.14 sha=0:0 malloc=x bits=64 build=0'");
    assert_false(nodes_create(nodes));
    assert_contains(nodes->error.text, "is Redis 5.0, which knows no users; use 6.0 or a later version");
}

FRESH_TEST(a_taken_port_is_exchanged) {
    nodes->options.server = make_script(
        nodes, "[ \"$1\" != --version ] || exec $REDIS --version\n[ -e tried ] && exec $REDIS \"$@\"\n"
               "echo '# Warning: Could not create server TCP listening socket: bind: Address already in use'\n"
               "touch tried; exit 1");
    nodes->options.nodes = 2;
    nodes_start(nodes);
    assert_string_equal(nodes_ask(nodes, 1, "PING"), "PONG");
}

FRESH_TEST(a_stranger_on_the_port_keeps_it_dead) {
    nodes_start(nodes);
    WORKS(kill, 0);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(nodes->backend->ports[0])};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    WORKS(restart, 0, false);
    pid_t pid = (pid_t)nodes->backend->pids[0];
    assert_int_equal(waitpid(-1, &status, 0), pid);
    close(fd);
    WORKS(restart, 0, false);
    nodes_await(nodes, 0, "PING", "PONG");
}

FRESH_TEST(a_clock_that_cannot_be_loaded_is_seen) {
    static char path[128];
    snprintf(path, sizeof path, "%s", make_script(nodes, "this is no library"));
    nodes->options.shim = path;
    start_fails(nodes, "the server runs without the clock ");
    assert_contains(nodes->error.text, "cannot be preloaded");
}

FRESH_TEST(a_directory_that_cannot_be_made) {
    nodes->options.directory = "/nonexistent";
    start_fails(nodes, "its directory /nonexistent/node-1 cannot be made: No such file");
}

static int64_t its_time_ms(const struct nodes *nodes, size_t n) {
    long long seconds, us;
    assert_int_equal(sscanf(nodes_ask(nodes, n, "TIME"), "%lld %lld", &seconds, &us), 2);
    return seconds * 1000 + us / 1000;
}

static int64_t real_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The node's clock is off by from_ms to to_ms, however busy this machine is. */
static void assert_error_ms(const struct nodes *nodes, size_t n, int64_t from_ms, int64_t to_ms) {
    int64_t before_ms = real_ms(), its_ms = its_time_ms(nodes, n), after_ms = real_ms();
    if (its_ms < before_ms + from_ms - 1 || its_ms > after_ms + to_ms + 1) {
        fail_msg("node %zu reads %lld ms, %lld more than here; expected %lld to %lld more", n + 1, (long long)its_ms,
                 (long long)(its_ms - before_ms), (long long)from_ms, (long long)to_ms);
    }
}

FRESH_TEST(a_jump_expires_and_a_jump_back_keeps) {
    nodes->options = (struct chaos_backend_options){.nodes = 2, .append_only = true, .shim = CLOCK_SHIM};
    nodes_start(nodes);
    assert_error_ms(nodes, 0, 0, 0);
    assert_string_equal(nodes_ask(nodes, 0, "SET k v PX 60000"), "OK");
    assert_string_equal(nodes_ask(nodes, 1, "SET k v PX 60000"), "OK");
    chaos_clock_jump(nodes->backend->clocks[0], 61000);
    assert_string_equal(nodes_ask(nodes, 0, "GET k"), "(nil)");
    assert_error_ms(nodes, 0, 61000, 61000);
    assert_string_equal(nodes_ask(nodes, 1, "GET k"), "v");
    assert_error_ms(nodes, 1, 0, 0);
    /* A key that is set while the clock is ahead lives too long after the clock is set back. */
    assert_string_equal(nodes_ask(nodes, 0, "SET k v NX PX 60000"), "OK");
    chaos_clock_jump(nodes->backend->clocks[0], -61000);
    assert_error_ms(nodes, 0, 0, 0);
    assert_true(atoll(nodes_ask(nodes, 0, "PTTL k")) > 60000);
    /* The error survives a restart, as on a real machine. */
    chaos_clock_jump(nodes->backend->clocks[1], -5000);
    WORKS(kill, 1);
    WORKS(restart, 1, false);
    nodes_await(nodes, 1, "PING", "PONG");
    assert_error_ms(nodes, 1, -5000, -5000);
}

FRESH_TEST(a_skewed_clock_runs_fast_and_keeps_its_error) {
    nodes->options = (struct chaos_backend_options){.nodes = 1, .shim = CLOCK_SHIM};
    nodes_start(nodes);
    /* 100 times as fast, so that the machine's own delays do not matter. */
    assert_string_equal(nodes_ask(nodes, 0, "SET k v PX 600000"), "OK");
    int64_t start_ms = real_ms();
    chaos_clock_skew(nodes->backend->clocks[0], 99000000);
    int64_t set_ms = real_ms(), pttl_ms;
    do {
        int64_t before_ms = real_ms() - set_ms - 1;
        pttl_ms = atoll(nodes_ask(nodes, 0, "PTTL k"));
        int64_t after_ms = real_ms() - start_ms + 1;
        assert_true(pttl_ms <= 600000 - before_ms * 100);
        assert_true(pttl_ms < 0 || pttl_ms >= 600000 - 100 * after_ms - 5000);
    } while (pttl_ms > 570000);
    chaos_clock_skew(nodes->backend->clocks[0], 0);
    int64_t rest_ms = real_ms() - start_ms;
    assert_error_ms(nodes, 0, 29000, 99 * (rest_ms + 2));
    int64_t error_ms = its_time_ms(nodes, 0) - real_ms();
    assert_error_ms(nodes, 0, error_ms, error_ms + 200);
    support_pause_ms(200); /* the rate is right now: at the old one this would be 20 s */
    assert_error_ms(nodes, 0, error_ms, error_ms + 2000);
}
