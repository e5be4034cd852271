/* Nodes in containers: the project's docker-compose.yml, under a name of the run's own. What docker
 * is to do stands in compose.sh. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/admin.h"
#include "backends/backend.h"
#include "backends/program.h"
#include "faults/fault.h"
#include "faults/lists.h"
#include "values/clock.h"
#include "values/values.h"

enum { DOCKER_MS = 120000, ANSWER_MS = 10000, PORT_TRIES = 3, CLOCK_PROOF_MS = 1000000 };

extern const unsigned char chaos_compose_script[]; /* compose.sh, which the build embeds */

struct containers {
    /* of this run alone: its containers, networks and volumes have it as a label */
    char project[64];
    char file[PATH_MAX]; /* docker-compose.yml, absolute */
    pid_t guard;         /* 0: there is none */
    int life;            /* the guard reads the other end, which ends with us */
};

struct words {
    const char *argv[13];
    char node[24], nodes[24];
};

static const char *const *words_of(const struct chaos_backend *backend, const char *verb, size_t node,
                                   struct words *words) {
    const struct containers *own = backend->own;
    const struct chaos_backend_options *options = &backend->options;
    snprintf(words->node, sizeof words->node, "%zu", node + 1);
    snprintf(words->nodes, sizeof words->nodes, "%zu", options->nodes);
    const char *const argv[] = {"/bin/sh",
                                "-c",
                                (const char *)chaos_compose_script,
                                "redlock-chaos",
                                verb,
                                words->node,
                                own->project,
                                own->file,
                                options->directory,
                                words->nodes,
                                options->shim != NULL ? options->shim : "",
                                options->append_only ? "yes" : "no",
                                NULL};
    memcpy(words->argv, argv, sizeof argv);
    return words->argv;
}

/* Does this to a node, or to all of them. */
static bool tell(const struct chaos_backend *backend, const char *verb, size_t node, struct chaos_error *error) {
    struct words words;
    struct chaos_said said;
    chaos_program_run(words_of(backend, verb, node, &words), NULL, -1, DOCKER_MS, &said);
    if (said.status == 0) {
        return true;
    }
    size_t length = strlen(said.text);
    while (length > 0 && said.text[length - 1] == '\n') {
        said.text[--length] = '\0';
    }
    const char *line = strrchr(said.text, '\n');
    line = line == NULL ? said.text : line + 1;
    return said.status == 1 ? chaos_fail(error, "%s", line)
                            : chaos_fail(error, "node %zu: docker, for %s: %s", node + 1, verb, line);
}

static bool kill_node(struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    return tell(backend, "kill", node, error);
}

static bool restart_node(struct chaos_backend *backend, size_t node, bool empty, struct chaos_error *error) {
    return tell(backend, empty ? "restart-empty" : "restart", node, error);
}

static bool pause_node(struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    return tell(backend, "pause", node, error);
}

static bool resume_node(struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    return tell(backend, "resume", node, error);
}

static bool lose_packets(struct chaos_backend *backend, size_t node, bool lost, struct chaos_error *error) {
    return tell(backend, lost ? "drop" : "pass", node, error);
}

/* A process that removes all of the project once we are dead, however we died. No other process
 * keeps the pipe's end: our children die with us. */
static bool start_guard(struct chaos_backend *backend) {
    struct containers *own = backend->own;
    struct words words;
    int ends[2];
    char *const *argv = (char *const *)(uintptr_t)words_of(backend, "guard", 0, &words);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (setsid() >= 0 && dup2(ends[0], 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0) {
            execv(argv[0], argv);
        }
        _exit(CHAOS_CANNOT_RUN);
    }
    close(ends[0]);
    own->guard = pid > 0 ? pid : 0;
    own->life = ends[1];
    return pid > 0;
}

static void stop_guard(struct containers *own) {
    siginfo_t info;
    /* Somebody may have ended it, and the caller waited for it. */
    if (waitid(P_PID, (id_t)own->guard, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
        (void)kill(own->guard, SIGKILL);
        (void)waitpid(own->guard, NULL, 0);
    }
    close(own->life);
}

/* `compose up`, with the ports by the file's variables. */
static bool bring_up(struct chaos_backend *backend, struct chaos_error *error) {
    const struct containers *own = backend->own;
    size_t nodes = backend->options.nodes;
    char variables[CHAOS_NODES_MAX][48];
    const char *more[CHAOS_NODES_MAX + 1] = {0};
    struct words words;
    struct chaos_said said = {0};
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        for (size_t n = 0; n < nodes; n++) {
            if (!chaos_node_port(backend->ports, nodes, n)) {
                return chaos_fail(error, "no free port on 127.0.0.1 was found for node %zu", n + 1);
            }
            snprintf(variables[n], sizeof variables[n], "REDLOCK_PORT_%zu=%u", n + 1, (unsigned)backend->ports[n]);
            more[n] = variables[n];
        }
        chaos_program_run(words_of(backend, "up", 0, &words), more, -1, DOCKER_MS, &said);
        if (said.status == 0) {
            return true;
        }
        /* Somebody else may have taken a port since we looked. */
        bool taken = strstr(said.text, "already allocated") != NULL || strstr(said.text, "already in use") != NULL;
        if (!taken || !tell(backend, "sweep", 0, error)) {
            break;
        }
    }
    return chaos_fail(error, "docker compose up: %.500s; the files are %s and %s/compose.yml", chaos_said_why(&said),
                      own->file, backend->options.directory);
}

static bool wait_for_answer(const struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    int64_t deadline_ms = tool_now_ms() + ANSWER_MS;
    struct chaos_error why;
    while (!chaos_admin_ping(backend->ports[node], &why)) {
        if (!tell(backend, "alive", node, error)) {
            return false;
        }
        if (!chaos_wait(deadline_ms)) {
            return chaos_fail(error, "node %zu does not answer at 127.0.0.1:%d within %d s of its start: %.300s",
                              node + 1, backend->ports[node], ANSWER_MS / 1000, why.text);
        }
    }
    return true;
}

/* If the image's loader rejects the shim, it runs the server without it, and clock faults would do
 * nothing. */
static bool prove_clock(const struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    int64_t before_s = chaos_admin_time_s(backend->ports[node]);
    chaos_clock_jump(backend->clocks[node], CLOCK_PROOF_MS);
    int64_t after_s = chaos_admin_time_s(backend->ports[node]);
    chaos_clock_jump(backend->clocks[node], -CLOCK_PROOF_MS);
    bool moved = before_s >= 0 && after_s - before_s >= CLOCK_PROOF_MS / 1000 - 60;
    return moved ||
           chaos_fail(
               error,
               "node %zu: its clock cannot be moved: the image does not load %s (of another C library, or an older "
               "one), or does not share %s/clock with us (a daemon in a virtual machine); use another image, "
               "or no clock faults",
               node + 1, backend->options.shim, backend->directories[node]);
}

static bool start(struct chaos_backend *backend, struct chaos_error *error) {
    const struct containers *own = backend->own;
    if (!chaos_backend_make_directories(backend, error)) {
        return false;
    }
    if (own->guard == 0 && !start_guard(backend)) {
        return chaos_fail(error, "cannot start the process that removes the containers should we die: %s",
                          strerror(errno));
    }
    if (!bring_up(backend, error)) {
        return false;
    }
    for (size_t n = 0; n < backend->options.nodes; n++) {
        if (!wait_for_answer(backend, n, error) || (backend->clocks[n] != NULL && !prove_clock(backend, n, error))) {
            return false;
        }
    }
    return true;
}

/* For whoever looks why something happened. */
static void save_log(const struct chaos_backend *backend, size_t node) {
    struct words words;
    struct chaos_said said;
    int fd = open(TOOL_TEXT(PATH_MAX + 8, "%s/log", backend->directories[node]),
                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0) {
        chaos_program_run(words_of(backend, "log", node, &words), NULL, fd, DOCKER_MS, &said);
        close(fd);
    }
}

static bool stop(struct chaos_backend *backend, struct chaos_error *error) {
    struct containers *own = backend->own;
    bool ended = true;
    if (own != NULL && own->guard != 0) {
        for (size_t n = 0; n < backend->options.nodes; n++) {
            save_log(backend, n);
        }
        ended = tell(backend, "sweep", 0, error);
        stop_guard(own);
    }
    free(own);
    backend->own = NULL;
    return ended;
}

bool chaos_backend_compose(struct chaos_backend *backend, struct chaos_error *error) {
    static const struct chaos_backend_ops ops = {start,       kill_node,    restart_node, pause_node,
                                                 resume_node, lose_packets, stop};
    const char *file = backend->options.compose_file != NULL ? backend->options.compose_file : "docker-compose.yml";
    struct containers *own = chaos_allocate(1, sizeof *own);
    uint32_t random = 0;
    bool has_random = getrandom(&random, sizeof random, 0) == sizeof random;
    snprintf(own->project, sizeof own->project, "redlock-chaos-%d-%08x", (int)getpid(), (unsigned)random);
    backend->own = own;
    if (!has_random) {
        chaos_fail(error, "the kernel gives no random number for the project's name");
    } else if (realpath(file, own->file) == NULL) {
        chaos_fail(error, "the compose file %s: %s; say by --compose-file where the project's docker-compose.yml is",
                   file, strerror(errno));
    } else if (tell(backend, "check", 0, error)) {
        backend->ops = &ops;
        return true;
    }
    free(own);
    backend->own = NULL;
    return false;
}
