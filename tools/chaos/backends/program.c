/* Runs programs: without a shell, for a limited time, their words in a buffer. */
#include "backends/program.h"
#include "values/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

bool chaos_wait(int64_t deadline_ms) {
    bool more = tool_now_ms() < deadline_ms;
    if (more) {
        (void)poll(NULL, 0, 2);
    }
    return more;
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
    for (; more != NULL && *more != NULL; more++) {
        (void)putenv((char *)(uintptr_t)*more);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(CHAOS_CANNOT_RUN);
}

/* By its own pid: other children are the caller's. Its status, as of struct chaos_said. */
static int wait_for(pid_t pid, int64_t limit_ms) {
    int64_t deadline_ms = tool_now_ms() + limit_ms;
    int status = 0;
    bool late = false;
    pid_t ended;
    while ((ended = waitpid(pid, &status, late ? 0 : WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (!late && !chaos_wait(deadline_ms)) {
            late = true;
            (void)kill(-pid, SIGKILL);
            (void)kill(pid, SIGKILL); /* it may have no group yet */
        }
    }
    if (late || ended < 0) {
        return late ? CHAOS_SAID_LATE : CHAOS_CANNOT_RUN; /* somebody else has waited for it */
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void chaos_program_run(const char *const *argv, const char *const *more, int out_fd, int64_t limit_ms,
                       struct chaos_said *said) {
    int words = out_fd < 0 ? memfd_create("words", MFD_CLOEXEC) : out_fd;
    pid_t self = getpid(), pid = words < 0 ? -1 : fork();
    if (pid == 0) {
        become(argv, more, words, self);
    }
    *said = (struct chaos_said){.status = pid < 0 ? CHAOS_CANNOT_RUN : wait_for(pid, limit_ms)};
    if (pid < 0) {
        snprintf(said->text, sizeof said->text, "no process can be made: %s", strerror(errno));
    } else if (said->status == CHAOS_SAID_LATE) {
        snprintf(said->text, sizeof said->text, "it did not end within %d s, and was killed", (int)(limit_ms / 1000));
    } else if (out_fd < 0 && pread(words, said->text, sizeof said->text - 1, 0) < 0) {
        snprintf(said->text, sizeof said->text, "its words cannot be read: %s", strerror(errno));
    }
    if (words >= 0 && out_fd < 0) {
        close(words);
    }
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
