/* A process of its own that ends the command of `run` and `elect` in time, whatever becomes of the
 * tool. */
#include "sentry.h"
#include "values/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
/* How often to look for the group once the tool is dead. */
#define ALONE_POLL_MS 50
/* Where the kernel cannot close a range: descriptors above this are not looked at. */
#define DESCRIPTORS_MAX 65536

enum { ORDERS_FD = 0, TIMER_FD = 1, LEADER_FD = 2 };

/* Who kills all of 'redlock', by name or by command line, means the tool. Not the guard. */
#define NAME "lease-sentry"

static char *arguments; /* as the kernel shows them */
static size_t arguments_size;

/* Without padding, which would be sent. */
struct order {
    int64_t kill_ns;
    int64_t group;
    int64_t is_first;
};

void tool_sentry_init(int argc, char **argv) {
    if (argc > 0) {
        arguments = argv[0];
        arguments_size = (size_t)(argv[argc - 1] - argv[0]) + strlen(argv[argc - 1]);
    }
}

static void take_name(void) {
    (void)prctl(PR_SET_NAME, NAME);
    if (arguments_size > 0) {
        memset(arguments, 0, arguments_size);
        strncpy(arguments, NAME, arguments_size);
    }
}

/* The tool's sockets and standard descriptors must not stay open because of us. */
static bool keep_only(int orders) {
    if (orders != ORDERS_FD && dup2(orders, ORDERS_FD) != ORDERS_FD) {
        return false;
    }
#ifdef SYS_close_range
    if (syscall(SYS_close_range, ORDERS_FD + 1U, ~0U, 0U) == 0) {
        return true;
    }
#endif
    for (int fd = ORDERS_FD + 1; fd < DESCRIPTORS_MAX; fd++) {
        (void)close(fd);
    }
    return true;
}

/* Returns whether the pipe has ended. */
static bool read_orders(struct order *order) {
    struct order next;
    ssize_t size;
    while ((size = read(ORDERS_FD, &next, sizeof next)) == (ssize_t)sizeof next) {
        /* The tool may have been faster than the child. */
        if (!next.is_first || order->group == 0) {
            *order = next;
        }
    }
    return size == 0;
}

static void set_timer(int64_t at_ns) {
    const struct itimerspec at = {.it_value = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S}};
    (void)timerfd_settime(TIMER_FD, TFD_TIMER_ABSTIME, &at, NULL);
}

/* A process may go over to another group, and its id to another process. A handle follows the one
 * and not the other. Returns false where there is none (before Linux 5.3): the group must do. */
static bool open_leader(pid_t group) {
    (void)close(LEADER_FD); /* of the group before */
#if defined SYS_pidfd_open && defined SYS_pidfd_send_signal
    return syscall(SYS_pidfd_open, group, 0U) == LEADER_FD;
#else
    (void)group;
    return false;
#endif
}

static bool signal_leader(int number) {
#if defined SYS_pidfd_open && defined SYS_pidfd_send_signal
    return syscall(SYS_pidfd_send_signal, LEADER_FD, number, NULL, 0U) == 0;
#else
    (void)number;
    return false;
#endif
}

static bool has_ended(pid_t group, bool leader) {
    return kill(-group, 0) != 0 && errno == ESRCH && (!leader || (!signal_leader(0) && errno == ESRCH));
}

/* On a busy machine an ordinary process may wait for its turn for longer than the margin. Only
 * root, and whom RLIMIT_RTPRIO allows it, may go first. */
static void go_first(void) {
    const struct sched_param least = {.sched_priority = 1};
    (void)sched_setscheduler(0, SCHED_FIFO, &least);
}

/* Only async-signal-safe calls: other threads of the tool may have held locks. */
__attribute__((noreturn)) static void watch(int orders) {
    struct order order = {0};
    bool alone = false, leader = false;
    /* Not a session of its own: Linux with autogroups let such a process wait for seconds on a busy
     * machine. */
    (void)setpgid(0, 0);
    take_name();
    go_first();
    if (!keep_only(orders) || chdir("/") != 0 ||
        timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK) != TIMER_FD) {
        _exit(1);
    }
    for (;;) {
        struct pollfd fds[] = {{.fd = TIMER_FD, .events = POLLIN}, {.fd = ORDERS_FD, .events = POLLIN}};
        (void)poll(fds, alone ? 1 : 2, alone ? ALONE_POLL_MS : -1);
        const int64_t before = order.group;
        alone = alone || read_orders(&order);
        if (order.group != before) {
            leader = open_leader((pid_t)order.group);
        }
        if (order.group == 0 ? alone : alone && has_ended((pid_t)order.group, leader)) {
            _exit(0);
        }
        if (order.group != 0 && tool_now_ns() >= order.kill_ns) {
            (void)kill((pid_t)-order.group, SIGKILL);
            if (leader) {
                (void)signal_leader(SIGKILL);
            }
            _exit(0);
        }
        set_timer(order.group != 0 ? order.kill_ns : 0); /* 0 disarms it */
    }
}

int tool_sentry_start(struct tool_sentry *sentry) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        return errno;
    }
    const pid_t pid = fork();
    const int error = pid < 0 ? errno : 0;
    if (pid == 0) {
        (void)close(fds[1]);
        watch(fds[0]);
    }
    (void)close(fds[0]);
    sentry->orders = fds[1];
    if (pid < 0) {
        tool_sentry_end(sentry);
    }
    return error;
}

/* An order that finds no room is dropped: the sentry then keeps an earlier time. */
static bool send_order(const struct tool_sentry *sentry, struct order order) {
    return sentry->orders >= 0 && (write(sentry->orders, &order, sizeof order) >= 0 || errno != EPIPE);
}

void tool_sentry_begin(const struct tool_sentry *sentry, int64_t kill_ns) {
    (void)send_order(sentry, (struct order){.kill_ns = kill_ns, .group = getpid(), .is_first = 1});
}

bool tool_sentry_order(const struct tool_sentry *sentry, pid_t group, int64_t kill_ns) {
    return send_order(sentry, (struct order){.kill_ns = kill_ns, .group = group});
}

void tool_sentry_end(struct tool_sentry *sentry) {
    if (sentry->orders >= 0) {
        (void)close(sentry->orders);
        sentry->orders = -1;
    }
}
