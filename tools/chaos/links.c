/* The conductor's side of the link proxy: its process, and the commands to it. */
#include "links.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"

#define TIME_MAX_US   (INT64_C(86400) * 1000000)
#define BYTES_MAX_A_S INT64_C(1000000000000)

enum { ANSWER_MS = 5000, CONTROL_FD = 3 };

/* In the child. What it does not need is closed: a socket that it kept open would never end for the others. */
static bool shed_files(int control) {
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDIN_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
        (control != CONTROL_FD && dup3(control, CONTROL_FD, O_CLOEXEC) < 0)) {
        return false;
    }
    if (close_range(CONTROL_FD + 1, ~0U, 0) != 0) { /* a kernel before 5.9 */
        struct rlimit files;
        if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
            return false;
        }
        for (rlim_t fd = CONTROL_FD + 1; fd < files.rlim_cur && fd < 1 << 20; fd++) {
            (void)close((int)fd);
        }
    }
    return true;
}

/* The child: a process of its own, which dies with the conductor and leaves the terminal's Ctrl-C to it. */
static int be_proxy(pid_t parent, int control, const struct chaos_links *links, const uint16_t *upstream) {
    sigset_t none;
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        return 1;
    }
    (void)prctl(PR_SET_NAME, "chaos-links");
    (void)setpgid(0, 0); /* what is sent to the conductor's group is for the conductor */
    if (signal(SIGINT, SIG_IGN) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        sigprocmask(SIG_SETMASK, &none, NULL) != 0 || !shed_files(control)) {
        fprintf(stderr, "redlock-chaos: the link proxy cannot set up its process: %s\n", strerror(errno));
        return 1;
    }
    return chaos_proxy_run(CONTROL_FD, links->clients, links->nodes, upstream);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One packet, by the deadline. False with the reason: "has ended", "did not answer …". */
static bool receive(int control, void *packet, size_t size, int64_t deadline_ms, const char **reason) {
    for (;;) {
        int64_t left_ms = deadline_ms - now_ms();
        struct pollfd fd = {.fd = control, .events = POLLIN};
        int ready = poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready == 0) {
            *reason = "did not answer in 5 s: it is stopped, or the machine has no time for it";
            return false;
        }
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        ssize_t got = ready < 0 ? -1 : recv(control, packet, size, MSG_DONTWAIT);
        if (got == (ssize_t)size) {
            return true;
        }
        if (got >= 0 || (errno != EINTR && errno != EAGAIN)) {
            *reason = "has ended; its last words are on standard error";
            return false;
        }
    }
}

static bool hear_ready(struct chaos_links *links, char *error, size_t error_size) {
    struct chaos_proxy_ready ready;
    const char *reason;
    if (!receive(links->control, &ready, sizeof ready, now_ms() + ANSWER_MS, &reason)) {
        snprintf(error, error_size, "cannot start the link proxy: its process (pid %d) %s", (int)links->pid, reason);
        return false;
    }
    if (ready.error[0] != '\0') {
        snprintf(error, error_size, "cannot start the link proxy: %s", ready.error);
        return false;
    }
    memcpy(links->ports, ready.ports, sizeof links->ports);
    return true;
}

bool chaos_links_start(struct chaos_links *links, size_t clients, size_t nodes, const uint16_t *upstream, char *error,
                       size_t error_size) {
    int ends[2];
    *links = (struct chaos_links){.nodes = nodes, .clients = clients, .control = -1};
    if (clients == 0 || clients > CHAOS_CLIENTS_MAX || nodes == 0 || nodes > CHAOS_NODES_MAX) {
        snprintf(error, error_size,
                 "cannot start the link proxy: there must be 1 to %d clients and 1 to %d nodes, not %zu and %zu",
                 CHAOS_CLIENTS_MAX, CHAOS_NODES_MAX, clients, nodes);
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        snprintf(error, error_size, "cannot start the link proxy: no socket pair: %s", strerror(errno));
        return false;
    }
    pid_t parent = getpid();
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int status = be_proxy(parent, ends[1], links, upstream);
        (void)fflush(stderr);
        _exit(status);
    }
    int reason = errno;
    (void)close(ends[1]);
    links->control = ends[0];
    if (pid < 0) {
        snprintf(error, error_size, "cannot start the link proxy: fork: %s", strerror(reason));
        chaos_links_stop(links);
        return false;
    }
    links->pid = pid;
    if (!hear_ready(links, error, error_size)) {
        chaos_links_stop(links);
        return false;
    }
    return true;
}

/* What is wrong with a command, or NULL. */
static const char *objection(const struct chaos_links *links, const struct chaos_proxy_command *command) {
    const struct chaos_link_rule *rule = &command->rule;
    if (links->control < 0) {
        return "the link proxy does not run";
    }
    if (command->client >= links->clients || command->node >= links->nodes) {
        return "there is no such link";
    }
    if (rule->delay_us < 0 || rule->delay_us > TIME_MAX_US || rule->jitter_us < 0 || rule->jitter_us > TIME_MAX_US) {
        return "delay and jitter must be from 0 up to a day";
    }
    if (rule->bytes_per_s < 0 || rule->bytes_per_s > BYTES_MAX_A_S) {
        return "a bandwidth must be up to 10^12 bytes a second, or 0 for no limit";
    }
    return NULL;
}

/* Has one command done. */
static bool command(struct chaos_links *links, const char *what, struct chaos_proxy_command *order, char *error,
                    size_t error_size) {
    int64_t deadline_ms = now_ms() + ANSWER_MS;
    const char *reason = objection(links, order);
    uint64_t answer = 0;
    if (reason != NULL) {
        snprintf(error, error_size, "cannot %s client %zu to node %zu: %s", what, (size_t)order->client + 1,
                 (size_t)order->node + 1, reason);
        return false;
    }
    order->number = ++links->asked;
    /* Where an earlier command was given up, its answer may still come. */
    bool sent = send(links->control, order, sizeof *order, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *order;
    if (!sent) {
        reason = errno == EAGAIN ? "takes no more commands: it is stopped, or the machine has no time for it"
                                 : "has ended; its last words are on standard error";
    }
    while (sent && answer != order->number) {
        sent = receive(links->control, &answer, sizeof answer, deadline_ms, &reason);
    }
    if (!sent) {
        snprintf(error, error_size, "cannot %s client %zu to node %zu: the link proxy (pid %d) %s", what,
                 (size_t)order->client + 1, (size_t)order->node + 1, (int)links->pid, reason);
    }
    return sent;
}

bool chaos_links_set(struct chaos_links *links, size_t client, size_t node, const struct chaos_link_rule *rule,
                     char *error, size_t error_size) {
    struct chaos_proxy_command order = {
        .order = CHAOS_ORDER_SET, .client = (uint32_t)client, .node = (uint32_t)node, .rule = *rule};
    return command(links, "change the link from", &order, error, error_size);
}

bool chaos_links_cut(struct chaos_links *links, size_t client, size_t node, char *error, size_t error_size) {
    struct chaos_proxy_command order = {.order = CHAOS_ORDER_CUT, .client = (uint32_t)client, .node = (uint32_t)node};
    return command(links, "cut the link from", &order, error, error_size);
}

void chaos_links_stop(struct chaos_links *links) {
    if (links->control >= 0) {
        (void)close(links->control);
        links->control = -1;
    }
    /* Who has been waited for already has no pid any more that may be killed. */
    if (links->pid > 0 && waitpid(links->pid, NULL, WNOHANG) == 0) {
        (void)kill(links->pid, SIGKILL);
        while (waitpid(links->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    links->pid = 0;
}
