/* Preloaded into redlock: its first child, the sentry, is stopped. Its second one, the command, is
 * forked when the file $SLOW_FORK_GATE exists. redlock goes on when that child has ended, or has
 * made $SLOW_FORK_GATE.ran. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SENTRY = 1, COMMAND = 2, POLL_MS = 10 };

static pid_t (*real_fork)(void);
static char gate[4096], waits[4096], ran[4096], sentry[4096];
static int count;

/* The command inherits the module, but not the variable. */
__attribute__((constructor)) static void prepare(void) {
    const char *name = getenv("SLOW_FORK_GATE");
    *(void **)&real_fork = dlsym(RTLD_NEXT, "fork");
    if (name != NULL) {
        (void)snprintf(gate, sizeof gate, "%s", name);
        (void)snprintf(waits, sizeof waits, "%s.waits", name);
        (void)snprintf(ran, sizeof ran, "%s.ran", name);
        (void)snprintf(sentry, sizeof sentry, "%s.sentry", name);
        (void)unsetenv("SLOW_FORK_GATE");
    }
}

static void note(const char *path, int number) {
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        (void)fprintf(file, "%d\n", number);
        (void)fclose(file);
    }
}

static int has_ended(pid_t pid) {
    siginfo_t end = {0};
    return waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid == pid;
}

__attribute__((visibility("default"))) pid_t fork(void) {
    const int number = gate[0] == '\0' ? 0 : ++count;
    if (number == COMMAND) {
        note(waits, 1);
        while (access(gate, F_OK) != 0) {
            (void)poll(NULL, 0, POLL_MS);
        }
    }
    const pid_t pid = real_fork();
    if (pid == 0 && number == SENTRY) {
        (void)raise(SIGSTOP);
    }
    if (pid > 0 && number == SENTRY) {
        note(sentry, (int)pid);
    }
    while (pid > 0 && number == COMMAND && access(ran, F_OK) != 0 && !has_ended(pid)) {
        (void)poll(NULL, 0, POLL_MS);
    }
    return pid;
}
