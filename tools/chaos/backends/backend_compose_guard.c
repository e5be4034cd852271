/* Nothing outlives a run: all that docker has of it is removed, by us, or by a guard once we are
 * dead. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend_compose.h"

enum { WORDS_MAX = 128, SWEEPS = 5, GUARD_QUIET_LOOKS = 3, GUARD_MS = 120000, GUARD_GOES_MS = 5000 };

/* Containers first: they use the others. */
static const struct {
    const char *name, *list, *remove;
} kinds[] = {{"containers", "ps -aq --no-trunc", "rm -f -v"},
             {"networks", "network ls -q", "network rm"},
             {"volumes", "volume ls -q", "volume rm"}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* `docker` with the words of both texts. What are too many ids for one call is left for the next
 * sweep. */
static void docker(const char *words, const char *more, struct chaos_said *said) {
    char text[sizeof said->text + 64], *rest = NULL;
    const char *argv[WORDS_MAX + 1] = {"docker"};
    snprintf(text, sizeof text, "%s %s", words, more);
    char *word = strtok_r(text, " \r\n", &rest);
    for (size_t argc = 1; word != NULL && argc < WORDS_MAX; word = strtok_r(NULL, " \r\n", &rest)) {
        argv[argc++] = word;
    }
    chaos_program_run(argv, NULL, -1, CHAOS_DOCKER_MS, said);
}

/* How many kinds of things there were before; -1 with a sentence if docker could not tell or did
 * not remove them. */
static int sweep_once(const char *project, struct chaos_error *error) {
    char filter[128];
    int found = 0;
    bool failed = false;
    snprintf(filter, sizeof filter, "--filter label=com.docker.compose.project=%s", project);
    for (size_t k = 0; k < KINDS; k++) {
        struct chaos_said ids, answer;
        docker(kinds[k].list, filter, &ids);
        bool listed = ids.status == 0, any = listed && ids.text[0] != '\0';
        if (any) {
            docker(kinds[k].remove, ids.text, &answer);
            found++;
        }
        if (!listed || (any && answer.status != 0)) {
            failed = true;
            chaos_fail(error, "%s of the project %s could not be %s: %.300s; remove them by hand", kinds[k].name,
                       project, listed ? "removed" : "listed", chaos_said_why(listed ? &answer : &ids));
        }
    }
    return failed ? -1 : found;
}

bool chaos_compose_sweep(const char *project, struct chaos_error *error) {
    int found = 1;
    /* What was being made or removed at the first look is gone or there at the next. */
    for (int i = 0; i < SWEEPS && found != 0; i++) {
        if (i > 0 && found < 0) {
            (void)poll(NULL, 0, 200);
        }
        found = sweep_once(project, error);
    }
    if (found > 0) {
        chaos_fail(error, "containers of the project %s come again and again; look at docker ps", project);
    }
    return found == 0;
}

/* Only these two descriptors, as 3 and 4, and nobody's terminal. */
static bool let_go(int ear, int parent) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high_ear = fcntl(ear, F_DUPFD_CLOEXEC, 10), high_parent = fcntl(parent, F_DUPFD_CLOEXEC, 10);
    bool done = null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0 && high_ear >= 0 &&
                dup3(high_ear, 3, O_CLOEXEC) >= 0;
    close(4);
    done = done && (parent < 0 || dup3(high_parent, 4, O_CLOEXEC) >= 0);
    closefrom(5);
    return done;
}

static _Noreturn void guard(const char *project, int ear, int parent) {
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_NAME, "redlock-guard");
    if (setsid() < 0 || !let_go(ear, parent)) {
        _exit(1);
    }
    /* Other processes may have inherited our end of the socket, so watch our death as well, where
     * the kernel can. */
    struct pollfd polls[] = {{.fd = 3, .events = POLLIN}, {.fd = parent < 0 ? -1 : 4, .events = POLLIN}};
    while (poll(polls, 2, -1) < 0) {
    }
    char byte;
    if (recv(3, &byte, 1, MSG_DONTWAIT) == 1) {
        _exit(0);
    }
    /* A command that was under way may still be making what is then there. */
    int64_t deadline_ms = chaos_now_ms() + GUARD_MS;
    for (int quiet = 0; quiet < GUARD_QUIET_LOOKS && chaos_now_ms() < deadline_ms;) {
        struct chaos_error error;
        quiet = sweep_once(project, &error) == 0 ? quiet + 1 : 0;
        (void)poll(NULL, 0, 500);
    }
    _exit(0);
}

bool chaos_compose_guard_start(struct chaos_compose *compose) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0U);
    pid_t child = fork();
    if (child == 0) {
        /* The child of a child is nobody's: who waits for any child of ours does not see it. */
        close(ends[0]);
        pid_t guardian = fork();
        if (guardian == 0) {
            guard(compose->project, ends[1], self);
        }
        _exit(guardian < 0);
    }
    int status = -1, error = errno;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    close(ends[1]);
    if (self >= 0) {
        close(self);
    }
    if (child < 0 || status != 0) {
        close(ends[0]);
        errno = child < 0 ? error : EAGAIN;
        return false;
    }
    compose->guard = ends[0];
    return true;
}

void chaos_compose_guard_stop(struct chaos_compose *compose) {
    if (compose->guard < 0) {
        return;
    }
    struct pollfd ends = {.fd = compose->guard, .events = POLLIN};
    if (send(compose->guard, "", 1, MSG_NOSIGNAL) == 1) {
        (void)poll(&ends, 1, GUARD_GOES_MS); /* its end closes with it */
    }
    close(compose->guard);
    compose->guard = -1;
}
