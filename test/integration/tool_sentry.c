/* The sentry alone: whom it kills, when, and what it keeps open. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sentry.h"
#include "values/clock.h"

#define MS         INT64_C(1000000)
#define PATIENCE_S 30

static void start(struct tool_sentry *sentry) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    assert_int_equal(tool_sentry_start(sentry), 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* A process that leads its own group, and ends by a signal only; it sends its first order if the
 * sentry is not NULL. */
static pid_t start_group(const struct tool_sentry *sentry, int64_t kill_ns) {
    int ready[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setpgid(0, 0);
        if (sentry != NULL) {
            tool_sentry_begin(sentry, kill_ns);
            (void)close(sentry->orders);
        }
        (void)alarm(PATIENCE_S * 2);
        (void)!write(ready[1], "", 1);
        for (;;) {
            (void)pause();
        }
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void pause_ms(int ms) {
    (void)poll(NULL, 0, ms);
}

/* Returns the signal that ended it. */
static int end_of(pid_t pid) {
    int status = 0;
    for (const int64_t until_ns = tool_now_ns() + PATIENCE_S * 1000 * MS; tool_now_ns() < until_ns;) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return WTERMSIG(status);
        }
        pause_ms(1);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return 0;
}

static bool is_alive(pid_t pid) {
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static int before(UNUSED void **state) {
    (void)setpgid(0, 0);
    return 0;
}

TESTS_WITH(before, NULL);

TEST(it_kills_at_the_time) {
    struct tool_sentry sentry;
    const int64_t kill_ns = tool_now_ns() + 200 * MS;
    start(&sentry);
    const pid_t pid = start_group(&sentry, kill_ns);
    assert_int_equal(kill(pid, SIGSTOP), 0); /* a stopped one, too */
    assert_int_equal(end_of(pid), SIGKILL);
    assert_true(tool_now_ns() >= kill_ns);
    tool_sentry_end(&sentry);
}

/* The last order counts, and a first order that comes late does not. */
TEST(an_order_moves_the_time) {
    struct tool_sentry sentry;
    start(&sentry);
    const pid_t pid = start_group(NULL, 0);
    const int64_t later_ns = tool_now_ns() + 300 * MS;
    (void)tool_sentry_order(&sentry, pid, later_ns + 3600000 * MS);
    (void)tool_sentry_order(&sentry, pid, later_ns);
    tool_sentry_begin(&sentry, 0); /* this very group: if it counted, it would end this test */
    assert_int_equal(end_of(pid), SIGKILL);
    assert_true(tool_now_ns() >= later_ns);
    tool_sentry_end(&sentry);
}

TEST(nothing_to_watch_is_not_killed) {
    struct tool_sentry sentry;
    start(&sentry);
    const pid_t spared = start_group(&sentry, tool_now_ns() + 3600000 * MS);
    const pid_t other = start_group(NULL, 0);
    (void)tool_sentry_order(&sentry, 0, 0);
    (void)tool_sentry_order(&sentry, other, 0);
    assert_int_equal(end_of(other), SIGKILL); /* by now it has read all orders */
    assert_true(is_alive(spared));
    assert_int_equal(kill(spared, SIGTERM), 0);
    assert_int_equal(end_of(spared), SIGTERM);
    tool_sentry_end(&sentry);
}

/* The pipe ends without an order: the tool is dead. */
TEST(it_outlives_the_tool) {
    struct tool_sentry sentry;
    const int64_t kill_ns = tool_now_ns() + 300 * MS;
    start(&sentry);
    const pid_t pid = start_group(&sentry, kill_ns);
    tool_sentry_end(&sentry);
    assert_int_equal(end_of(pid), SIGKILL);
    assert_true(tool_now_ns() >= kill_ns);
}

/* Our descriptors close although it lives: nodes and readers see the end of the tool. */
TEST(it_keeps_nothing_open) {
    struct tool_sentry sentry;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    start(&sentry);
    (void)close(fds[1]);
    struct pollfd end = {.fd = fds[0], .events = POLLIN};
    assert_int_equal(poll(&end, 1, PATIENCE_S * 1000), 1);
    assert_true((end.revents & POLLHUP) != 0);
    (void)tool_sentry_order(&sentry, 0, 0); /* SIGPIPE if it had ended */
    (void)close(fds[0]);
    tool_sentry_end(&sentry);
}

/* Its group has ended and so has the tool: it ends before its time. */
TEST(it_does_not_stay) {
    struct tool_sentry sentry;
    start(&sentry);
    const pid_t pid = start_group(&sentry, tool_now_ns() + 3600000 * MS);
    tool_sentry_end(&sentry);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(end_of(pid), SIGTERM);
    for (const int64_t until_ns = tool_now_ns() + PATIENCE_S * 1000 * MS; tool_now_ns() < until_ns;) {
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) { /* nor do the other sentries */
            return;
        }
        pause_ms(1);
    }
    fail_msg("a sentry stays");
}
