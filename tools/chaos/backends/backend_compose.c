/* Nodes in containers: the project's docker-compose.yml, under a name of the run's own. */
#include "backends/backend_compose.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "backends/admin.h"
#include "backends/node_files.h"
#include "faults/lists.h"

enum { ANSWER_MS = 10000, DIES_MS = 10000, FREEZES_MS = 5000, PORT_TRIES = 3, CLOCK_PROOF_MS = 1000000 };

static bool check_docker(struct chaos_error *error) {
    struct chaos_said said;
    CHAOS_DOCKER(&said, "version", "--format", "{{.Server.Version}}");
    if (said.status == 0) {
        return true;
    }
    bool missing = said.status == CHAOS_CANNOT_RUN;
    const char *why = chaos_said_why(&said);
    const char *help = missing ? "install it (Debian: apt-get install docker.io docker-compose)"
                       : strstr(why, "permission denied") != NULL
                           ? "be root, or a member of the group docker"
                           : "start it (systemctl start docker), or say by DOCKER_HOST where it is";
    return chaos_fail(error, "%s: %.300s; %s, or use --backend=process",
                      missing ? "there is no program docker" : "the Docker daemon does not answer", why, help);
}

static bool check_compose(struct chaos_compose *compose, struct chaos_error *error) {
    struct chaos_said said;
    CHAOS_DOCKER(&said, "compose", "version");
    compose->plugin = said.status == 0;
    if (!compose->plugin) {
        chaos_program_run((const char *const[]){"docker-compose", "version", NULL}, NULL, -1, CHAOS_DOCKER_MS, &said);
    }
    return said.status == 0 || chaos_fail(error,
                                          "there is docker, but neither docker compose nor docker-compose works "
                                          "(%.200s); install one (Debian: apt-get "
                                          "install docker-compose), or use --backend=process",
                                          chaos_said_why(&said));
}

static const char *name_of(const struct chaos_backend *backend, size_t node) {
    const struct chaos_compose *compose = backend->own;
    return compose->names[node];
}

enum chaos_compose_state chaos_compose_look(const struct chaos_backend *backend, size_t node,
                                            struct chaos_container *container, struct chaos_error *error) {
    struct chaos_container ignored;
    struct chaos_said said;
    int running = 0, paused = 0;
    container = container == NULL ? &ignored : container;
    CHAOS_DOCKER(&said, "inspect", "--type", "container", "--format",
                 "{{if .State.Running}}1{{else}}0{{end}} {{if .State.Paused}}1{{else}}0{{end}} {{.State.Pid}} {{.Id}}",
                 name_of(backend, node));
    if (said.status != 0 ||
        sscanf(said.text, "%d %d %d %79s", &running, &paused, &container->pid, container->id) != 4) {
        chaos_fail(error, "node %zu: docker inspect %s: %.300s", node + 1, name_of(backend, node),
                   chaos_said_why(&said));
        return CHAOS_CONTAINER_UNKNOWN;
    }
    return !running ? CHAOS_CONTAINER_DEAD : paused ? CHAOS_CONTAINER_PAUSED : CHAOS_CONTAINER_RUNS;
}

/* `docker VERB container`. */
static bool tell(const struct chaos_backend *backend, size_t node, const char *verb, struct chaos_error *error) {
    struct chaos_said said;
    CHAOS_DOCKER(&said, verb, name_of(backend, node));
    return said.status == 0 || chaos_fail(error, "node %zu: docker %s %s: %.300s", node + 1, verb,
                                          name_of(backend, node), chaos_said_why(&said));
}

static bool compose_kill(struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    enum chaos_compose_state state = chaos_compose_look(backend, node, NULL, error);
    if (state == CHAOS_CONTAINER_UNKNOWN || state == CHAOS_CONTAINER_DEAD) {
        return state == CHAOS_CONTAINER_DEAD;
    }
    /* A paused container does not die before it is resumed. It may also end by itself. */
    bool told = (state != CHAOS_CONTAINER_PAUSED || tell(backend, node, "unpause", error)) &&
                tell(backend, node, "kill", error);
    int64_t deadline_ms = chaos_now_ms() + (told ? DIES_MS : 0);
    while (chaos_compose_look(backend, node, NULL, NULL) != CHAOS_CONTAINER_DEAD) {
        if (!chaos_wait(deadline_ms)) {
            if (told) {
                chaos_fail(error, "node %zu did not die within %d s of docker kill", node + 1, DIES_MS / 1000);
            }
            return false;
        }
    }
    return true;
}

static bool compose_restart(struct chaos_backend *backend, size_t node, bool empty, struct chaos_error *error) {
    enum chaos_compose_state state = chaos_compose_look(backend, node, NULL, error);
    if (state != CHAOS_CONTAINER_DEAD) {
        return state != CHAOS_CONTAINER_UNKNOWN;
    }
    const char *directory = backend->directories[node];
    if (empty && !chaos_node_remove_keys(directory)) {
        return chaos_fail(error, "node %zu: cannot remove what is in %s/data: %s", node + 1, directory,
                          strerror(errno));
    }
    return tell(backend, node, "start", error);
}

static bool compose_pause(struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    enum chaos_compose_state state = chaos_compose_look(backend, node, NULL, error);
    if (state == CHAOS_CONTAINER_DEAD) {
        chaos_fail(error, "node %zu is dead: it cannot be paused", node + 1);
    }
    /* On a busy machine, runc gives up now and then: "unable to freeze". */
    int64_t deadline_ms = chaos_now_ms() + FREEZES_MS;
    while (state == CHAOS_CONTAINER_RUNS && !tell(backend, node, "pause", error)) {
        if (strstr(error->text, "unable to freeze") == NULL || !chaos_wait(deadline_ms)) {
            return false;
        }
        state = chaos_compose_look(backend, node, NULL, error);
    }
    return state == CHAOS_CONTAINER_RUNS || state == CHAOS_CONTAINER_PAUSED;
}

static bool compose_resume(struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    enum chaos_compose_state state = chaos_compose_look(backend, node, NULL, error);
    return state == CHAOS_CONTAINER_RUNS || state == CHAOS_CONTAINER_DEAD ||
           (state == CHAOS_CONTAINER_PAUSED && tell(backend, node, "unpause", error));
}

static bool choose_ports(struct chaos_backend *backend, struct chaos_error *error) {
    for (size_t n = 0; n < backend->options.nodes; n++) {
        if (!chaos_node_port(backend->ports, backend->options.nodes, n)) {
            return chaos_fail(error, "no free port on 127.0.0.1 was found for node %zu", n + 1);
        }
    }
    return true;
}

/* What a container that ended had to say. */
static bool tell_end(const struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    struct chaos_said said;
    CHAOS_DOCKER(&said, "logs", "--tail", "6", name_of(backend, node));
    for (char *at = said.text; *at != '\0'; at++) {
        *at = *at == '\n' || *at == '\r' ? ' ' : *at;
    }
    return chaos_fail(
        error, "node %zu ended at its start (the image must be of Redis 7.0 or Valkey 7.2, or later); it said: %.400s",
        node + 1, said.text);
}

static bool wait_for_answer(const struct chaos_backend *backend, size_t node, struct chaos_error *error) {
    int64_t deadline_ms = chaos_now_ms() + ANSWER_MS;
    struct chaos_error why;
    while (!chaos_admin_ping(backend->ports[node], &why)) {
        enum chaos_compose_state state = chaos_compose_look(backend, node, NULL, error);
        if (state == CHAOS_CONTAINER_UNKNOWN) {
            return false;
        }
        if (state == CHAOS_CONTAINER_DEAD) {
            return tell_end(backend, node, error);
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

/* `compose up`, with the ports by the file's variables. */
static void up(const struct chaos_backend *backend, struct chaos_said *said) {
    size_t nodes = backend->options.nodes;
    char variables[31][48], services[31][32];
    const char *more[32] = {0}, *argv[48] = {0};
    size_t argc = chaos_compose_argv(backend->own, true, argv);
    argv[argc++] = "up";
    argv[argc++] = "-d";
    argv[argc++] = "--no-build";
    for (size_t n = 0; n < nodes; n++) {
        snprintf(variables[n], sizeof variables[n], "REDLOCK_PORT_%zu=%u", n + 1, (unsigned)backend->ports[n]);
        snprintf(services[n], sizeof services[n], "node%zu", n + 1);
        more[n] = variables[n];
        argv[argc++] = services[n];
    }
    chaos_program_run(argv, more, -1, CHAOS_DOCKER_MS, said);
}

static bool bring_up(struct chaos_backend *backend, struct chaos_error *error) {
    struct chaos_compose *compose = backend->own;
    struct chaos_said said = {0};
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        if (!choose_ports(backend, error)) {
            return false;
        }
        up(backend, &said);
        if (said.status == 0) {
            return true;
        }
        /* Somebody else may have taken a port since we looked. */
        bool taken = strstr(said.text, "already allocated") != NULL || strstr(said.text, "already in use") != NULL;
        if (!taken || !chaos_compose_sweep(compose->project, error)) {
            break;
        }
    }
    return chaos_fail(error, "%s up: %.500s; the files are %s and %s",
                      compose->plugin ? "docker compose" : "docker-compose", chaos_said_why(&said), compose->file,
                      compose->override);
}

static bool compose_start(struct chaos_backend *backend, struct chaos_error *error) {
    struct chaos_compose *compose = backend->own;
    size_t nodes = backend->options.nodes;
    if (!chaos_backend_make_directories(backend, error) || !chaos_compose_write_override(backend, error)) {
        return false;
    }
    if (compose->guard < 0 && !chaos_compose_guard_start(compose)) {
        return chaos_fail(error, "cannot start the process that removes the containers should we die: %s",
                          strerror(errno));
    }
    if (!bring_up(backend, error)) {
        return false;
    }
    for (size_t n = 0; n < nodes; n++) {
        if (!wait_for_answer(backend, n, error) || (backend->clocks[n] != NULL && !prove_clock(backend, n, error))) {
            return false;
        }
    }
    return true;
}

/* For whoever looks why something happened. */
static void save_log(const struct chaos_backend *backend, size_t node) {
    char path[PATH_MAX + sizeof "/log"];
    struct chaos_said said;
    snprintf(path, sizeof path, "%s/log", backend->directories[node]);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0) {
        chaos_program_run((const char *const[]){"docker", "logs", name_of(backend, node), NULL}, NULL, fd,
                          CHAOS_DOCKER_MS, &said);
        close(fd);
    }
}

static bool compose_stop(struct chaos_backend *backend, struct chaos_error *error) {
    struct chaos_compose *compose = backend->own;
    bool ended = true;
    if (compose != NULL && compose->guard >= 0) {
        for (size_t n = 0; n < backend->options.nodes; n++) {
            save_log(backend, n);
        }
        ended = chaos_compose_sweep(compose->project, error);
        chaos_compose_guard_stop(compose);
    }
    free(compose);
    backend->own = NULL;
    return ended;
}

static const struct chaos_backend_ops compose_ops = {.start = compose_start,
                                                     .kill = compose_kill,
                                                     .restart = compose_restart,
                                                     .pause = compose_pause,
                                                     .resume = compose_resume,
                                                     .lose = chaos_compose_lose,
                                                     .stop = compose_stop};

bool chaos_backend_compose(struct chaos_backend *backend, struct chaos_error *error) {
    const struct chaos_backend_options *options = &backend->options;
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != sizeof random) {
        return chaos_fail(error, "the kernel gives no random number for the project's name");
    }
    struct chaos_compose *compose = chaos_allocate(1, sizeof *compose);
    compose->guard = -1;
    snprintf(compose->project, sizeof compose->project, "redlock-chaos-%d-%08x", (int)getpid(), (unsigned)random);
    for (size_t n = 0; n < options->nodes; n++) {
        snprintf(compose->names[n], sizeof compose->names[n], "%s-node%zu", compose->project, n + 1);
    }
    const char *file = options->compose_file != NULL ? options->compose_file : "docker-compose.yml";
    bool worked = false;
    if (realpath(file, compose->file) == NULL) {
        chaos_fail(error, "the compose file %s: %s; say by --compose-file where the project's docker-compose.yml is",
                   file, strerror(errno));
    } else if (snprintf(compose->override, sizeof compose->override, "%s/compose.yml", options->directory) >=
               (int)sizeof compose->override) {
        chaos_fail(error, "the directory's name is too long");
    } else {
        worked = check_docker(error) && check_compose(compose, error) &&
                 chaos_compose_check_file(compose, options->nodes, error);
    }
    if (!worked) {
        free(compose);
        return false;
    }
    backend->own = compose;
    backend->ops = &compose_ops;
    return true;
}
