/* The command of `run`: starts it in its own process group, sends our signals on to it, and ends it
 * before its lease does. */
#include "child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "options.h"
#include "values/clock.h"

/* How often to check the process group after its leader has ended. */
#define GROUP_POLL_S 0.02

static bool is_terminal_ours(void) {
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/*
 * Whether the command gets the terminal at its start: standard input and output are the terminal,
 * and our group is in its foreground. A command in a pipeline gets it only when it reads from it,
 * because its neighbours may need it, too.
 */
static bool is_terminal_wanted(void) {
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && is_terminal_ours();
}

/* Puts the group into the foreground, from its process or from ours. SIGTTOU is ignored or
 * blocked. */
static void hand_terminal(pid_t group) {
    /* Fails if the terminal has hung up; then there is nothing to do. */
    (void)tcsetpgrp(STDIN_FILENO, group);
}

static void take_terminal_back(struct tool_child *child) {
    if (child->has_terminal) {
        hand_terminal(getpgrp());
        child->has_terminal = false;
    }
}

static void send_to_group(const struct tool_child *child, int number) {
    /* ESRCH: all processes of the group have ended. */
    (void)kill(-child->pid, number);
    if (!child->reaped && getpgid(child->pid) != child->pid) {
        (void)kill(child->pid, number); /* it has gone over to another group */
    }
}

/* Starting or running, and not yet being stopped. */
static bool is_up(const struct tool_child *child) {
    return child->state == TOOL_CHILD_STARTING || child->state == TOOL_CHILD_RUNNING;
}

static void forward(struct ev_loop *loop, ev_signal *watcher, int events) {
    (void)loop, (void)events;
    struct tool_child *child = watcher->data;
    if (watcher->signum == SIGINT || watcher->signum == SIGQUIT || watcher->signum == SIGTERM ||
        (watcher->signum == SIGHUP && !is_up(child))) { /* daemons take SIGHUP for a reload */
        child->end_asked = true;
    }
    if (is_up(child) || child->state == TOOL_CHILD_STOPPING) {
        send_to_group(child, watcher->signum);
    }
}

static void give_terminal(struct tool_child *child) {
    hand_terminal(child->pid);
    child->has_terminal = true;
}

/* A command that was stopped while its lease ended must not run any further. In this turn of the
 * loop it gets SIGTERM and is then continued, or it gets SIGKILL. */
static void continue_child(struct tool_child *child) {
    if (!is_up(child) || !child->may_run(child->data)) {
        return;
    }
    if (is_terminal_wanted()) {
        give_terminal(child);
    }
    send_to_group(child, SIGCONT);
}

static void resumed(struct ev_loop *loop, ev_signal *watcher, int events) {
    (void)loop, (void)events;
    continue_child(watcher->data);
}

/* Stops this process, or its whole group, as the terminal would have. Returns whether we were
 * stopped: the kernel does not stop an orphaned process group. */
static bool suspend_us(struct tool_child *child, int number, bool whole_group) {
    sigset_t mask;
    sigset_t before;
    sigset_t pending;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCONT);
    ev_signal_stop(child->loop, &child->suspend); /* restores the default action */
    sigprocmask(SIG_BLOCK, &mask, &before);
    (void)kill(whole_group ? 0 : getpid(), number);
    /* We run again. SIGCONT is blocked, so if it woke us, it is pending. */
    bool was_stopped = sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!child->signals->ignored[SIGTSTP]) {
        ev_signal_start(child->loop, &child->suspend);
    }
    return was_stopped;
}

static void suspend_asked(struct ev_loop *loop, ev_signal *watcher, int events) {
    (void)loop, (void)events;
    struct tool_child *child = watcher->data;
    if (is_up(child)) {
        send_to_group(child, SIGTSTP);
    }
    if (!suspend_us(child, SIGTSTP, false)) {
        continue_child(child);
    }
}

static void child_stopped(struct tool_child *child, int number) {
    bool wants_terminal = number == SIGTTIN || number == SIGTTOU;
    if (wants_terminal && is_terminal_ours()) {
        give_terminal(child);
        continue_child(child);
        return;
    }
    if (!child->has_terminal && !wants_terminal) {
        return; /* another process stopped it, and will continue it */
    }
    take_terminal_back(child);
    /* Not SIGTTOU: it is ignored here. Not SIGSTOP: it would also stop an orphaned group, which
     * nobody continues. */
    if (!suspend_us(child, wants_terminal ? SIGTTIN : SIGTSTP, true) && !wants_terminal) {
        continue_child(child);
    }
}

static bool group_lives(const struct tool_child *child) {
    return kill(-child->pid, 0) == 0 || errno == EPERM;
}

static void over(struct tool_child *child) {
    child->state = TOOL_CHILD_OVER;
    (void)tool_sentry_order(&child->sentry, 0, 0);
    ev_timer_stop(child->loop, &child->kill_timer);
    ev_timer_stop(child->loop, &child->group_timer);
}

static void stop_listening(struct tool_child *child) {
    if (child->report >= 0) {
        ev_io_stop(child->loop, &child->report_watcher);
        close(child->report);
        child->report = -1;
    }
}

/* Reads the pipe from the child: it has an errno, or ends once the exec has succeeded. */
static void listen_to_exec(struct tool_child *child) {
    int error = 0;
    ssize_t size;
    if (child->state != TOOL_CHILD_STARTING) {
        return;
    }
    do {
        size = read(child->report, &error, sizeof error);
    } while (size < 0 && errno == EINTR);
    if (size < 0 && errno == EAGAIN) {
        return;
    }
    stop_listening(child);
    child->state = TOOL_CHILD_RUNNING;
    if (size == sizeof error) {
        child->exec_error = error;
        take_terminal_back(child);
        over(child);
    }
}

static void exec_reported(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop, (void)events;
    listen_to_exec(watcher->data);
}

static void look_at_group(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop, (void)events;
    struct tool_child *child = watcher->data;
    if (!group_lives(child)) {
        over(child);
    }
}

static void changed(struct ev_loop *loop, ev_child *watcher, int events) {
    (void)events;
    struct tool_child *child = watcher->data;
    if (WIFSTOPPED(watcher->rstatus)) {
        if (is_up(child)) {
            child_stopped(child, WSTOPSIG(watcher->rstatus));
        }
        return;
    }
    if (!WIFEXITED(watcher->rstatus) && !WIFSIGNALED(watcher->rstatus)) {
        return; /* continued */
    }
    listen_to_exec(child); /* the child's end may be reported before its exec */
    child->reaped = true;
    child->wait_status = watcher->rstatus;
    child->had_terminal = child->has_terminal;
    ev_child_stop(loop, watcher);
    take_terminal_back(child);
    if (child->state == TOOL_CHILD_STOPPING && group_lives(child)) {
        ev_timer_again(loop, &child->group_timer);
    } else {
        over(child);
    }
}

/* A stopped process ends by SIGKILL, too. */
static void kill_group(struct tool_child *child) {
    send_to_group(child, SIGKILL);
    child->state = TOOL_CHILD_KILLED;
    if (child->reaped) {
        over(child);
    }
}

static void grace_ended(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop, (void)events;
    struct tool_child *child = watcher->data;
    assert(child->state == TOOL_CHILD_STOPPING);
    kill_group(child);
}

void tool_child_init(struct tool_child *child, struct ev_loop *loop, const struct tool_signals *signals,
                     bool (*may_run)(void *data), void *data) {
    static const int numbers[TOOL_FORWARDED_SIGNALS] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                                        SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};
    *child = (struct tool_child){
        .loop = loop, .signals = signals, .may_run = may_run, .data = data, .report = -1, .sentry = {.orders = -1}};
    for (int i = 0; i < TOOL_FORWARDED_SIGNALS; i++) {
        ev_signal_init(&child->forwarders[i], forward, numbers[i]);
        child->forwarders[i].data = child;
        if (!signals->ignored[numbers[i]]) {
            ev_signal_start(loop, &child->forwarders[i]);
        }
    }
    ev_signal_init(&child->suspend, suspend_asked, SIGTSTP);
    child->suspend.data = child;
    if (!signals->ignored[SIGTSTP]) {
        ev_signal_start(loop, &child->suspend);
    }
    ev_signal_init(&child->resume, resumed, SIGCONT);
    child->resume.data = child;
    ev_signal_start(loop, &child->resume);
    ev_timer_init(&child->kill_timer, grace_ended, 0., 0.);
    ev_set_priority(&child->kill_timer, EV_MAXPRI);
    child->kill_timer.data = child;
    ev_timer_init(&child->group_timer, look_at_group, 0., GROUP_POLL_S);
    child->group_timer.data = child;
}

/* systemd starts the tool and names that. Sockets and watchdog are meant for the command, which
 * ignores both unless the variables name it. */
static const char *const activation_names[TOOL_ACTIVATION_VARIABLES] = {"LISTEN_PID", "WATCHDOG_PID"};

static bool names_us(const char *value) {
    char *end;
    errno = 0;
    const long pid = value != NULL ? strtol(value, &end, 10) : 0;
    return pid > 0 && errno == 0 && *end == '\0' && pid == (long)getpid();
}

/* Before the fork: makes room in the environment for the pid of any process. Returns 0 or an
 * errno. */
static int prepare_activation(struct tool_child *child) {
    char room[16];
    memset(child->activation, 0, sizeof child->activation);
    /* Still our own pid, in as many digits as any may have: the next command is prepared, too. */
    snprintf(room, sizeof room, "%010ld", (long)getpid());
    for (int i = 0; i < TOOL_ACTIVATION_VARIABLES; i++) {
        if (!names_us(getenv(activation_names[i]))) {
            continue;
        }
        if (setenv(activation_names[i], room, 1) != 0) {
            return errno;
        }
        child->activation[i] = getenv(activation_names[i]);
        /* It names the same process by the inode of its pidfd. */
        if (i == 0 && unsetenv("LISTEN_PIDFDID") != 0) {
            return errno;
        }
    }
    return 0;
}

/* In the child: the variables that named the tool name this process. Async-signal-safe. */
static void take_activation(const struct tool_child *child) {
    char text[16];
    char *digit = text + sizeof text - 1;
    *digit = '\0';
    for (long rest = (long)getpid(); rest > 0; rest /= 10) {
        *--digit = (char)('0' + rest % 10);
    }
    for (int i = 0; i < TOOL_ACTIVATION_VARIABLES; i++) {
        if (child->activation[i] != NULL) {
            memcpy(child->activation[i], digit, (size_t)(text + sizeof text - digit));
        }
    }
}

/* Runs between fork and exec: only async-signal-safe calls, every signal blocked. Never returns. */
__attribute__((noreturn)) static void become(const struct tool_child *child, char **argv, pid_t parent, int report,
                                             int64_t kill_ns) {
    (void)setpgid(0, 0);
    tool_sentry_begin(&child->sentry, kill_ns);
    take_activation(child);
    if (child->has_terminal) {
        hand_terminal(getpid());
    }
    /* If the tool is killed, nobody renews the lock: the command should end before the sentry must
     * kill it. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) {
        _exit(TOOL_EXIT_SYSTEM);
    }
    tool_signals_restore(child->signals);
    if (tool_now_ns() >= kill_ns) { /* the tool was stopped before the fork */
        (void)kill(getpid(), SIGKILL);
    }
    execvp(argv[0], argv);
    int error = errno;
    ssize_t written = write(report, &error, sizeof error);
    _exit(written == sizeof error ? TOOL_EXIT_NOT_FOUND : TOOL_EXIT_SYSTEM);
}

static void watch_start(struct tool_child *child, pid_t pid, int report) {
    child->pid = pid;
    /* The child does the same. Whoever is first, the group exists before anybody uses it. */
    (void)setpgid(pid, pid);
    child->state = TOOL_CHILD_STARTING;
    child->report = report;
    ev_io_init(&child->report_watcher, exec_reported, report, EV_READ);
    child->report_watcher.data = child;
    ev_io_start(child->loop, &child->report_watcher);
    ev_child_init(&child->watcher, changed, pid, 1);
    child->watcher.data = child;
    ev_child_start(child->loop, &child->watcher);
}

/* With every signal blocked. Returns 0 or an errno. */
static int start(struct tool_child *child, char **argv, int64_t kill_ns) {
    int report[2];
    int error = tool_sentry_start(&child->sentry); /* first: it must not get a copy of the pipe */
    if (error != 0) {
        return error;
    }
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) {
        return errno;
    }
    child->has_terminal = is_terminal_wanted();
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become(child, argv, parent, report[1], kill_ns);
    }
    if (pid < 0) {
        error = errno;
        close(report[0]);
        child->has_terminal = false;
    } else {
        watch_start(child, pid, report[0]);
    }
    close(report[1]);
    return error;
}

int tool_child_start(struct tool_child *child, char **argv, int64_t kill_ns) {
    sigset_t all;
    sigset_t before;
    int error = prepare_activation(child);
    if (error != 0) {
        return error;
    }
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    error = start(child, argv, kill_ns);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* If somebody has ended the sentry, starts another one. */
static void order_kill(struct tool_child *child, int64_t kill_ns) {
    sigset_t all;
    sigset_t before;
    if (tool_sentry_order(&child->sentry, child->pid, kill_ns)) {
        return;
    }
    tool_sentry_end(&child->sentry);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    if (tool_sentry_start(&child->sentry) == 0) {
        (void)tool_sentry_order(&child->sentry, child->pid, kill_ns);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void tool_child_renew(struct tool_child *child, int64_t kill_ns) {
    if (is_up(child)) {
        order_kill(child, kill_ns);
    }
}

enum tool_child_state tool_child_stop(struct tool_child *child, int64_t kill_ns) {
    listen_to_exec(child);
    const enum tool_child_state before = child->state;
    if (!is_up(child)) {
        return before;
    }
    const int64_t left_ns = kill_ns - tool_now_ns();
    /* Not SIGTERM while it starts: if that is blocked, the command would begin now. */
    if (child->state == TOOL_CHILD_STARTING || left_ns <= 0) {
        stop_listening(child);
        kill_group(child);
        return before;
    }
    child->state = TOOL_CHILD_STOPPING;
    order_kill(child, kill_ns);
    send_to_group(child, SIGTERM);
    /* A stopped process acts on SIGTERM when it is continued, before it runs anything else. */
    send_to_group(child, SIGCONT);
    ev_now_update(child->loop);
    ev_timer_set(&child->kill_timer, (double)left_ns / 1e9, 0.);
    ev_timer_start(child->loop, &child->kill_timer);
    return before;
}

bool tool_child_is_out_of_reach(const struct tool_child *child) {
    return child->pid != 0 && kill(child->reaped ? -child->pid : child->pid, 0) != 0 && errno == EPERM;
}

int tool_child_exit_status(const struct tool_child *child) {
    assert(child->reaped);
    return WIFSIGNALED(child->wait_status) ? TOOL_EXIT_SIGNAL_BASE + WTERMSIG(child->wait_status)
                                           : WEXITSTATUS(child->wait_status);
}

void tool_child_end(struct tool_child *child) {
    for (int i = 0; i < TOOL_FORWARDED_SIGNALS; i++) {
        ev_signal_stop(child->loop, &child->forwarders[i]);
    }
    ev_signal_stop(child->loop, &child->suspend);
    ev_signal_stop(child->loop, &child->resume);
    tool_sentry_end(&child->sentry);
    stop_listening(child);
    ev_child_stop(child->loop, &child->watcher);
    ev_timer_stop(child->loop, &child->kill_timer);
    ev_timer_stop(child->loop, &child->group_timer);
}
