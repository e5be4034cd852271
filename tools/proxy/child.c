/* The proxy as a child process: forked without exec. Commands go over a socket pair, one line a
 * packet. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve.h"
#include "values/clock.h"

enum { ANSWER_MS = 5000, CONTROL_FD = 3, LINE_SIZE = 1024, PORT_SIZE = sizeof " 65535" };

/* Runs in the child. Closes inherited sockets, so that other processes see them end. */
static bool shed_files(int control) {
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDIN_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
        (control != CONTROL_FD && dup3(control, CONTROL_FD, O_CLOEXEC) < 0)) {
        return false;
    }
    if (syscall(SYS_close_range, CONTROL_FD + 1, ~0U, 0) != 0) { /* before Linux 5.9 */
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

/* Runs in the child. It dies with its parent and ignores the terminal's Ctrl-C. */
static int be_proxy(pid_t parent, int control, const struct proxy_ports *ports, size_t count) {
    sigset_t none;
    sigemptyset(&none);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        return 1;
    }
    (void)prctl(PR_SET_NAME, "redlock-proxy");
    (void)setpgid(0, 0); /* signals to the parent's group must not reach the proxy */
    if (signal(SIGINT, SIG_IGN) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        sigprocmask(SIG_SETMASK, &none, NULL) != 0 || !shed_files(control)) {
        fprintf(stderr, "redlock-proxy: cannot set up its process: %s\n", strerror(errno));
        return 1;
    }
    return proxy_serve(CONTROL_FD, CONTROL_FD, ports, count);
}

/* Receives one line by the deadline. Returns false with the reason if none came. */
static bool receive(struct proxy_child *child, char *line, size_t size, int64_t deadline_ms) {
    const char *reason = "has ended; its last words are on standard error";
    for (;;) {
        int64_t left_ms = deadline_ms - tool_now_ms();
        struct pollfd fd = {.fd = child->control, .events = POLLIN};
        int ready = poll(&fd, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready == 0) {
            reason = "did not answer in 5 s: it is stopped, or the machine has no time for it";
            break;
        }
        ssize_t got = ready < 0 ? -1 : recv(child->control, line, size, MSG_DONTWAIT);
        if (got > 0) {
            line[got - 1] = '\0'; /* the newline */
            return true;
        }
        if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            break;
        }
    }
    (void)snprintf(line, size, "the link proxy (pid %d) %s", (int)child->pid, reason);
    return false;
}

/* For "WORD…" returns true, for "error: …" false. `line` becomes the text after it. */
static bool read_answer(const char *word, char *line) {
    static const char error[] = "error: ";
    bool good = strncmp(line, word, strlen(word)) == 0, bad = strncmp(line, error, strlen(error)) == 0;
    size_t skipped = good ? strlen(word) : bad ? strlen(error) : 0;
    memmove(line, line + skipped, strlen(line + skipped) + 1);
    return good;
}

static pid_t fork_proxy(int control, const uint16_t *targets, size_t count) {
    pid_t parent = getpid();
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct proxy_ports *ports = calloc(count, sizeof *ports);
        for (size_t i = 0; ports != NULL && i < count; i++) {
            ports[i].target = targets[i];
        }
        int status = ports != NULL ? be_proxy(parent, control, ports, count) : 1;
        (void)fflush(stderr);
        _exit(status);
    }
    return pid;
}

bool proxy_child_start(struct proxy_child *child, const uint16_t *targets, size_t count, uint16_t *ports, char *error,
                       size_t error_size) {
    int ends[2];
    size_t size = LINE_SIZE + count * PORT_SIZE;
    char *line = malloc(size), *place = line;
    *child = (struct proxy_child){.control = -1};
    if (line == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        (void)snprintf(error, error_size, "no socket pair: %s", strerror(errno));
        free(line);
        return false;
    }
    child->control = ends[0];
    pid_t pid = fork_proxy(ends[1], targets, count);
    (void)snprintf(line, size, "error: fork: %s", strerror(errno));
    (void)close(ends[1]);
    child->pid = pid > 0 ? pid : 0;
    bool ready = pid > 0 && receive(child, line, size, tool_now_ms() + ANSWER_MS);
    ready = (ready || pid < 0) && read_answer("ready", line);
    for (size_t i = 0; ready && i < count; i++) {
        ports[i] = (uint16_t)strtoul(place, &place, 10);
    }
    if (!ready) {
        (void)snprintf(error, error_size, "%s", line);
        proxy_child_stop(child);
    }
    free(line);
    return ready;
}

bool proxy_child_ask(struct proxy_child *child, char *answer, size_t size, const char *format, ...) {
    char line[LINE_SIZE];
    int64_t deadline_ms = tool_now_ms() + ANSWER_MS;
    va_list arguments;
    if (child->control < 0) {
        (void)snprintf(answer, size, "the link proxy does not run");
        return false;
    }
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line) {
        (void)snprintf(answer, size, "the command is too long");
        return false;
    }
    line[length++] = '\n';
    if (send(child->control, line, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) != length) {
        (void)snprintf(answer, size, "the link proxy (pid %d) %s", (int)child->pid,
                       errno == EAGAIN ? "takes no more commands: it is stopped, or the machine has no time for it"
                                       : "has ended; its last words are on standard error");
        return false;
    }
    /* The answers to abandoned commands come first. */
    child->owing++;
    bool came = true;
    while (came && child->owing > 0) {
        came = receive(child, line, sizeof line, deadline_ms);
        child->owing -= came;
    }
    bool done = came && read_answer("ok", line);
    (void)snprintf(answer, size, "%s", line);
    return done;
}

void proxy_child_stop(struct proxy_child *child) {
    if (child->control >= 0) {
        (void)close(child->control);
        child->control = -1;
    }
    /* After a successful wait the pid is no longer ours to kill. */
    if (child->pid > 0 && waitpid(child->pid, NULL, WNOHANG) == 0) {
        (void)kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    child->pid = 0;
}
