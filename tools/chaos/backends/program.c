/* Runs programs: without a shell, for a limited time, their words in a buffer. */
#include "backends/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t chaos_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool chaos_program_begin(pid_t parent, int out) {
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0); /* to be killed with all that it starts; Ctrl-C is for the parent */
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && in >= 0 && dup2(in, 0) >= 0 &&
           dup2(out, 1) >= 0 && dup2(out, 2) >= 0;
}

/* In the child. */
static _Noreturn void become(const char *const *argv, const char *const *more, int out, pid_t parent) {
    if (!chaos_program_begin(parent, out)) {
        _exit(CHAOS_CANNOT_RUN);
    }
    static const char *const steering[] = {"COMPOSE_FILE", "COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME",
                                           "COMPOSE_ENV_FILES"};
    for (size_t i = 0; i < sizeof steering / sizeof steering[0]; i++) {
        unsetenv(steering[i]);
    }
    for (; more != NULL && *more != NULL; more++) {
        (void)putenv((char *)(uintptr_t)*more);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(CHAOS_CANNOT_RUN);
}

/* Until it says no more, or the time is over: false. */
static bool listen_to(int fd, int64_t deadline_ms, struct chaos_said *said) {
    size_t length = 0;
    for (;;) {
        int64_t left_ms = deadline_ms - chaos_now_ms();
        struct pollfd poll_ = {.fd = fd, .events = POLLIN};
        int ready = left_ms > 0 ? poll(&poll_, 1, (int)left_ms) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            return false;
        }
        char piece[4096];
        ssize_t got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got == 0;
        }
        size_t room = sizeof said->text - 1 - length;
        size_t taken = (size_t)got < room ? (size_t)got : room;
        memcpy(said->text + length, piece, taken);
        length += taken;
        said->text[length] = '\0';
    }
}

/* By its own pid: other children are the caller's. */
static void wait_for(pid_t pid, int64_t deadline_ms, struct chaos_said *said) {
    int status = 0;
    bool late = false;
    for (;;) {
        pid_t ended = waitpid(pid, &status, late ? 0 : WNOHANG);
        if (ended == pid) {
            break;
        }
        if (ended < 0 && errno != EINTR) {
            status = CHAOS_CANNOT_RUN << 8; /* somebody else has waited for it */
            break;
        }
        if (!late && chaos_now_ms() >= deadline_ms) {
            late = true;
            (void)kill(-pid, SIGKILL);
            (void)kill(pid, SIGKILL); /* it may have no group yet */
        } else {
            (void)poll(NULL, 0, 2);
        }
    }
    said->status = late ? CHAOS_SAID_LATE : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void chaos_program_run(const char *const *argv, const char *const *more, int out_fd, int64_t limit_ms,
                       struct chaos_said *said) {
    int fds[2];
    said->text[0] = '\0';
    said->status = CHAOS_CANNOT_RUN;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        snprintf(said->text, sizeof said->text, "pipe: %s", strerror(errno));
        return;
    }
    int64_t deadline_ms = chaos_now_ms() + limit_ms;
    pid_t self = getpid(), pid = fork();
    if (pid == 0) {
        become(argv, more, out_fd < 0 ? fds[1] : out_fd, self);
    }
    close(fds[1]);
    if (pid < 0) {
        snprintf(said->text, sizeof said->text, "fork: %s", strerror(errno));
    } else {
        /* What is late with its words is late with its end. */
        bool heard = listen_to(fds[0], deadline_ms, said);
        wait_for(pid, heard ? deadline_ms : 0, said);
        if (said->status == CHAOS_SAID_LATE) {
            snprintf(said->text, sizeof said->text, "it did not end within %d s, and was killed",
                     (int)(limit_ms / 1000));
        }
    }
    close(fds[0]);
}

const char *chaos_said_why(struct chaos_said *said) {
    /* docker-compose ends with a line that says nothing; what was wrong stands above. */
    static const char *const signs[] = {"ERROR", "Error", "annot ", "denied", "failed"};
    char *last = NULL, *rest = said->text;
    for (char *line; (line = strsep(&rest, "\r\n")) != NULL;) {
        if (line[strspn(line, " \t")] == '\0') {
            continue;
        }
        last = line;
        for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
            if (strstr(line, signs[i]) != NULL) {
                return line;
            }
        }
    }
    return last == NULL ? "it said nothing" : last;
}
