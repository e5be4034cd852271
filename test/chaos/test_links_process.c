/* The link proxy as a process: how it starts and dies, how it reports errors, and what it leaves
 * open. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"
#include "proxy/serve.h"

static const struct chaos_link_rule clear_rule = {0};

/* Returns whether the process is gone, or a zombie. */
static bool is_dead(pid_t pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return true;
    }
    bool read = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    const char *rest = strrchr(line, ')');
    return !read || rest == NULL || rest[2] == 'Z' || rest[2] == 'X';
}

static void wait_dead(pid_t pid) {
    int64_t deadline_ms = support_now_ms() + 20000;
    while (!is_dead(pid) && support_now_ms() < deadline_ms) {
        support_pause_ms(5);
    }
    assert_true(is_dead(pid));
}

TEST(it_keeps_to_itself) {
    struct ends ends = {0};
    char path[64], text[64] = "";
    int extra = open("/dev/null", O_RDONLY); /* without CLOEXEC; the proxy must not keep it */
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
    ends_start(&ends, 1, 1);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    snprintf(path, sizeof path, "/proc/%d/comm", (int)ends.links.proxy.pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    (void)fclose(file);
    assert_string_equal(text, "redlock-proxy\n");
    /* Standard files, control, a listener, the loop's own. */
    assert_in_range(ends_files(ends.links.proxy.pid), 6, 8);
    assert_int_equal(kill(ends.links.proxy.pid, SIGINT), 0);
    ends_set(&ends, 0, 0, clear_rule);
    assert_int_equal(kill(ends.links.proxy.pid, SIGTERM), 0);
    wait_dead(ends.links.proxy.pid);
    ends_stop(&ends);
    ends_close(extra);
}

TEST(it_dies_with_the_conductor) {
    int pipe_fds[2];
    pid_t proxy = 0;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t conductor = fork();
    if (conductor == 0) {
        struct ends ends = {0};
        ends_start(&ends, 1, 1);
        /* A client that inherited the control socket and still runs must not keep the proxy
         * alive. */
        pid_t client = fork();
        if (client == 0) {
            support_pause_ms(120000);
            _exit(0);
        }
        pid_t pids[2] = {ends.links.proxy.pid, client};
        _exit(write(pipe_fds[1], pids, sizeof pids) == (ssize_t)sizeof pids && pause() == 0);
    }
    pid_t pids[2];
    assert_int_equal(read(pipe_fds[0], pids, sizeof pids), sizeof pids);
    proxy = pids[0];
    assert_false(is_dead(proxy));
    assert_int_equal(kill(conductor, SIGKILL), 0);
    assert_int_equal(waitpid(conductor, NULL, 0), conductor);
    wait_dead(proxy);
    (void)kill(pids[1], SIGKILL);
    ends_close_both(pipe_fds[0], pipe_fds[1]);
}

TEST(commands_to_a_dead_proxy_fail_with_a_sentence) {
    struct ends ends = {0};
    struct chaos_error error = {""};
    ends_start(&ends, 1, 1);
    assert_int_equal(kill(ends.links.proxy.pid, SIGKILL), 0);
    wait_dead(ends.links.proxy.pid);
    assert_false(chaos_links_set(&ends.links, 0, 0, &clear_rule, &error));
    assert_contains(error.text, "cannot change the link from client 1 to node 1: the link proxy (pid ");
    assert_contains(error.text, "has ended");
    assert_false(chaos_links_cut(&ends.links, 0, 0, &error));
    assert_contains(error.text, "cannot cut the link from client 1 to node 1: ");
    /* The conductor may do this too. */
    assert_int_equal(waitpid(ends.links.proxy.pid, NULL, 0), ends.links.proxy.pid);
    ends_stop(&ends);
    chaos_links_stop(&ends.links);
    assert_false(chaos_links_cut(&ends.links, 0, 0, &error));
    assert_contains(error.text, "does not run");
}

TEST(a_proxy_that_does_not_answer_is_given_up) {
    struct ends ends = {0};
    struct chaos_error error = {""};
    ends_start(&ends, 1, 1);
    assert_int_equal(kill(ends.links.proxy.pid, SIGSTOP), 0);
    int64_t from_ms = support_now_ms();
    assert_false(chaos_links_set(&ends.links, 0, 0, &(struct chaos_link_rule){.hold_requests = true}, &error));
    assert_true(support_now_ms() - from_ms >= 4999);
    assert_contains(error.text, "did not answer in 5 s");
    assert_int_equal(kill(ends.links.proxy.pid, SIGCONT), 0);
    /* The next command does not take the late answer as its own. */
    assert_int_equal(poll(&(struct pollfd){.fd = ends.links.proxy.control, .events = POLLIN}, 1, 20000), 1);
    assert_int_equal(kill(ends.links.proxy.pid, SIGSTOP), 0);
    assert_false(chaos_links_cut(&ends.links, 0, 0, &error));
    assert_int_equal(kill(ends.links.proxy.pid, SIGCONT), 0);
    ends_set(&ends, 0, 0, clear_rule);
    int near, far;
    ends_join(&ends, 0, 0, &near, &far);
    ends_close_both(near, far);
    ends_stop(&ends);
}

TEST(senseless_rules_are_refused) {
    struct ends ends = {0};
    struct chaos_error error = {""};
    ends_start(&ends, 2, 1);
    const struct chaos_link_rule bad[] = {
        {.delay_us = -1}, {.jitter_us = -1}, {.bytes_per_s = -1}, {.delay_us = INT64_MAX}, {.bytes_per_s = INT64_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(chaos_links_set(&ends.links, 0, 0, &bad[i], &error));
        assert_contains(error.text, "must be");
    }
    assert_false(chaos_links_set(&ends.links, 2, 0, &clear_rule, &error));
    assert_string_equal(error.text, "cannot change the link from client 3 to node 1: there is no such link");
    assert_false(chaos_links_cut(&ends.links, 0, 1, &error));
    struct chaos_links none;
    assert_false(chaos_links_start(&none, 65, 1, ends.ports, &error));
    assert_false(chaos_links_start(&none, 1, 0, ends.ports, &error));
    assert_contains(error.text, "1 to 64 clients and 1 to 31 nodes");
    ends_stop(&ends);
}

/* Runs `what` in its own process with a limit of open files. A failure of cmocka there ends it with
 * a status. */
static void with_limit(rlim_t limit, int (*what)(void)) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit files = {limit, limit};
        _exit(setrlimit(RLIMIT_NOFILE, &files) == 0 ? what() : 100);
    }
    assert_exits(child, 0);
}

static int start_too_many(void) {
    struct chaos_links links;
    uint16_t upstream[31] = {1};
    struct chaos_error error = {""};
    if (chaos_links_start(&links, 20, 31, upstream, &error)) {
        return 1;
    }
    return strstr(error.text, "need 3132 open files") != NULL && strstr(error.text, "1000 are allowed") != NULL &&
                   links.proxy.pid == 0
               ? 0
               : 2;
}

TEST(too_few_open_files_are_told) {
    with_limit(1000, start_too_many);
}

enum { CROWD = 60, PAIRS = 5 };

/* More connections than descriptors. The proxy serves as many as it can, the others wait, and it
 * does not spin. */
TEST(without_descriptors_connections_wait) {
    struct ends ends = {0};
    int near[CROWD], served = 0;
    ends_start(&ends, 1, 1);
    rlim_t limit = ends_files(ends.links.proxy.pid) + 2 * PAIRS + 1;
    assert_int_equal(prlimit(ends.links.proxy.pid, RLIMIT_NOFILE, &(struct rlimit){limit, limit}, NULL), 0);
    for (int i = 0; i < CROWD; i++) {
        near[i] = ends_connect(ends.links.ports[0][0]);
        ends_say(near[i], "x");
    }
    ends_wait_files(ends.links.proxy.pid, limit);
    int64_t cpu_ms = ends_cpu_ms(ends.links.proxy.pid);
    support_pause_ms(1000);
    assert_true(ends_cpu_ms(ends.links.proxy.pid) - cpu_ms < 500);
    /* Each served connection makes room for another. */
    for (; served < CROWD; served++) {
        int far = ends_accept(ends.listeners[0]);
        ends_hear(far, "x");
        ends_reset(far);
    }
    for (int i = 0; i < CROWD; i++) {
        ends_hear_reset(near[i]);
        ends_close(near[i]);
    }
    ends_wait_files(ends.links.proxy.pid, limit - 2 * PAIRS - 1);
    ends_stop(&ends);
}

enum { MANY = 300, BOUND = 256 };

/* Held connections of one link, more than its limit. */
static void start_many(struct ends *ends, int *near, size_t *files) {
    ends_start(ends, 1, 1);
    *files = ends_files(ends->links.proxy.pid);
    ends_set(ends, 0, 0, (struct chaos_link_rule){.hold_requests = true});
    for (int i = 0; i < MANY; i++) {
        near[i] = ends_connect(ends->links.ports[0][0]);
        ends_say(near[i], "x");
    }
    ends_wait_files(ends->links.proxy.pid, *files + BOUND);
}

TEST(a_link_has_a_bound_of_connections) {
    struct ends ends = {0};
    int near[MANY];
    size_t files;
    start_many(&ends, near, &files);
    ends_set(&ends, 0, 0, clear_rule);
    for (int i = 0; i < MANY; i++) {
        int far = ends_accept(ends.listeners[0]);
        ends_hear(far, "x");
        ends_close_both(far, near[i]);
    }
    ends_wait_files(ends.links.proxy.pid, files);
    ends_stop(&ends);
}

TEST(a_cut_is_of_connections_that_still_wait_too) {
    struct ends ends = {0};
    int near[MANY];
    size_t files;
    start_many(&ends, near, &files);
    ends_cut(&ends, 0, 0);
    for (int i = 0; i < MANY; i++) {
        ends_hear_reset(near[i]);
        ends_close(near[i]);
    }
    ends_wait_files(ends.links.proxy.pid, files);
    near[0] = ends_connect(ends.links.ports[0][0]);
    ends_set(&ends, 0, 0, clear_rule);
    ends_close(ends_accept(ends.listeners[0]));
    ends_close(near[0]);
    ends_stop(&ends);
}

TEST(nothing_is_left_open) {
    enum { ROUNDS = 3000 };
    struct ends ends = {0};
    ends_start(&ends, 2, 1);
    size_t files = ends_files(ends.links.proxy.pid);
    for (int i = 0; i < ROUNDS; i++) {
        int near, far;
        ends_join(&ends, (size_t)i % 2, 0, &near, &far);
        ends_say(near, "request");
        ends_say(far, "reply");
        if (i % 5 == 0) {
            ends_set(&ends, (size_t)i % 2, 0, (struct chaos_link_rule){.delay_us = i % 3 * 100, .hold_replies = true});
            ends_say(near, "more");
        }
        if (i % 3 == 0) {
            ends_cut(&ends, (size_t)i % 2, 0);
        }
        if (i % 2 == 0) {
            ends_reset(near);
            ends_close(far);
        } else {
            ends_close_both(far, near);
        }
        if (i % 5 == 0) {
            ends_set(&ends, (size_t)i % 2, 0, clear_rule);
        }
    }
    ends_wait_files(ends.links.proxy.pid, files);
    ends_stop(&ends);
}

TEST(the_largest_run_has_room) {
    struct chaos_links links;
    uint16_t upstream[CHAOS_NODES_MAX], port;
    struct chaos_error error = {""};
    int listener = ends_listen(&port);
    for (size_t n = 0; n < CHAOS_NODES_MAX; n++) {
        upstream[n] = port;
    }
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    bool may = chaos_links_start(&links, CHAOS_CLIENTS_MAX, CHAOS_NODES_MAX, upstream, &error);
    if (!may) {
        /* If the machine does not allow it, the proxy says so. */
        assert_true(files.rlim_max < 9952);
        assert_contains(error.text, "need 9952 open files");
        ends_close(listener);
        return;
    }
    int near = ends_connect(links.ports[CHAOS_CLIENTS_MAX - 1][CHAOS_NODES_MAX - 1]), far = ends_accept(listener);
    ends_say(near, "far away");
    ends_hear(far, "far away");
    chaos_links_stop(&links);
    ends_hear_fin(far);
    ends_close_both(near, far);
    ends_close(listener);
}

/* Ended from outside, the process frees everything. A sanitizer or valgrind reports a leak. */
TEST(it_ends_when_nobody_can_command_it) {
    char line[64];
    unsigned ports[2];
    int ends[2];
    uint16_t port;
    int listener = ends_listen(&port);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        ends_close_both(ends[0], listener);
        const struct proxy_ports links[2] = {{0, port}, {0, port}};
        exit(proxy_serve(ends[1], ends[1], links, 2));
    }
    ends_close(ends[1]);
    assert_true(recv(ends[0], line, sizeof line, 0) > 0);
    assert_int_equal(sscanf(line, "ready %u %u\n", &ports[0], &ports[1]), 2);
    ends_say(ends[0], "set 0 requests hold 1\n");
    assert_int_equal(recv(ends[0], line, sizeof line, 0), strlen("ok\n"));
    int held = ends_connect((uint16_t)ports[0]), near = ends_connect((uint16_t)ports[1]), far = ends_accept(listener);
    ends_say(held, "held");
    ends_say(near, "passes");
    ends_hear(far, "passes");
    ends_close(ends[0]);
    ends_hear_reset(far);
    assert_exits(pid, 0);
    ends_close_both(held, near);
    ends_close_both(far, listener);
}
