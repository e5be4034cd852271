/* The conductor: starts everything, lets the schedule happen, ends everything, and judges what was written down. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin.h"
#include "control.h"
#include "crew.h"
#include "merge.h"
#include "nemesis.h"
#include "place.h"

/*
 * state      what happens                                                         → state
 * RUNNING    faults begin and end; clients come and go; its time is over          → HEALING
 *            SIGINT, SIGTERM                                                      → HEALING
 *            a node, the proxy or the auditor ended by itself; too many crashes   → BROKEN
 * HEALING    all faults have ended                                                → ENDING: clients get SIGTERM
 * ENDING     the last client has ended                                            → DRAINING
 *            its time is over: the others get SIGKILL, which counts as a crash    → DRAINING
 * DRAINING   no node has a key, or the longest ttl is over                        → DONE
 */
enum state { RUNNING, HEALING, ENDING, DRAINING, DONE, BROKEN };

enum { CRASHES_MAX = 20, HEAL_MS = 30000, SWEEP_MS = 50, SWEEP_TIMEOUT_MS = 40 };

struct run {
    const struct chaos_options *options;
    struct chaos_schedule schedule;
    size_t next; /* of the schedule */
    struct chaos_place place;
    struct chaos_log log;
    struct chaos_backend *backend;
    struct chaos_links links;
    bool links_started;
    struct chaos_crew crew;
    struct chaos_nemesis *nemesis;
    char uris[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX][32];
    const char *nodes[CHAOS_CLIENTS_MAX][CHAOS_NODES_MAX];
    int signals, control;
    enum state state;
    int64_t start_us, state_end_us;
    json_t *left;
    char error[1024];
};

static bool broke(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool broke(struct run *run, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->error, sizeof run->error, format, arguments);
    va_end(arguments);
    run->state = BROKEN;
    return false;
}

static int64_t run_us(const struct run *run) {
    return run->options->settings.seconds * 1000000;
}

/* The crew's doors for the nemesis. */
static bool door_signal(void *ctx, size_t client, int signal) {
    return chaos_crew_signal(ctx, client, signal);
}

static bool door_spawn(void *ctx, size_t client) {
    return chaos_crew_spawn(ctx, client);
}

static bool make_schedule(struct run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_settings *settings = &options->settings;
    size_t nodes = (size_t)settings->nodes, clients = (size_t)settings->clients;
    char error[700];
    if (options->schedule != NULL) {
        char *text = chaos_place_read(options->schedule, error, sizeof error);
        bool worked = text != NULL && chaos_schedule_parse(text, nodes, clients, &run->schedule, error, sizeof error);
        free(text);
        return worked || broke(run, "the schedule %s: %s", options->schedule, error);
    }
    if (options->experiment != NULL && !options->kinds_given) {
        return chaos_experiment_schedule(options->experiment, settings, options->seed, &run->schedule, error, sizeof error) ||
               broke(run, "%s: %s", options->experiment->name, error);
    }
    struct chaos_schedule_shape shape = {.nodes = nodes,
                                         .clients = clients,
                                         .duration_ms = settings->seconds * 1000,
                                         .kinds = options->kinds,
                                         .append_only = settings->append_only};
    return chaos_schedule_random(options->seed, &shape, &run->schedule) || broke(run, "out of memory");
}

static void log_start(struct run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_settings *settings = &options->settings;
    json_t *resources = json_array();
    for (size_t i = 0; i < run->place.resource_count; i++) {
        json_array_append_new(resources, json_string(run->place.resources[i]));
    }
    run->start_us = chaos_now_us();
    char version[64] = "?", error[256];
    chaos_admin_version(run->backend->ports[0], version, sizeof version, error, sizeof error);
    chaos_log_event(&run->log, run->start_us, "start", "s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:b", "version",
                    version, "command", options->command_line, "backend", options->backend, "experiment",
                    options->experiment == NULL ? "" : options->experiment->name, "seed", (json_int_t)options->seed,
                    "nodes", (json_int_t)settings->nodes, "clients", (json_int_t)settings->clients, "resources", resources,
                    "ttl_ms", (json_int_t)settings->ttl_ms, "node_timeout_ms", (json_int_t)settings->node_timeout_ms,
                    "wait_ms", (json_int_t)settings->wait_ms, "breaks_assumptions",
                    (int)chaos_schedule_breaks(&run->schedule, settings->append_only));
}

static bool start_crew(struct run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_settings *settings = &options->settings;
    struct chaos_crew *crew = &run->crew;
    crew->client_count = (size_t)settings->clients;
    crew->log = &run->log;
    crew->auditor_options = (struct chaos_auditor_options){.ports = run->backend->ports,
                                                           .node_count = (size_t)settings->nodes,
                                                           .resources = run->place.resources,
                                                           .resource_count = run->place.resource_count,
                                                           .interval_ms = SWEEP_MS,
                                                           .timeout_ms = SWEEP_TIMEOUT_MS,
                                                           .log_path = run->place.auditor_path};
    if (!chaos_crew_spawn_auditor(crew)) {
        return broke(run, "cannot start the auditor: %s", strerror(errno));
    }
    for (size_t c = 0; c < crew->client_count; c++) {
        for (size_t n = 0; n < (size_t)settings->nodes; n++) {
            snprintf(run->uris[c][n], sizeof run->uris[c][n], "redis://127.0.0.1:%d", run->links.ports[c][n]);
            run->nodes[c][n] = run->uris[c][n];
        }
        crew->client[c] = (struct chaos_client_options){.client = c,
                                                        .seed = options->seed,
                                                        .nodes = run->nodes[c],
                                                        .node_count = (size_t)settings->nodes,
                                                        .resources = run->place.resources,
                                                        .resource_count = run->place.resource_count,
                                                        .log_path = run->place.client_paths[c],
                                                        .counters_path = run->place.counters_path,
                                                        .settings = settings};
        if (!chaos_crew_spawn(crew, c)) {
            return broke(run, "cannot start client %zu: %s", c + 1, strerror(errno));
        }
    }
    return true;
}

static bool start(struct run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_settings *settings = &options->settings;
    struct chaos_place *place = &run->place;
    char error[800];
    /* Two descriptors a link in the proxy. Where the limit is too low, the proxy says so. */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!chaos_place_make(place, options, error, sizeof error)) {
        return broke(run, "%s", error);
    }
    char *schedule = chaos_schedule_format(&run->schedule, (size_t)settings->nodes, (size_t)settings->clients);
    bool written = schedule != NULL && chaos_place_write(place, "schedule.txt", schedule, error, sizeof error);
    free(schedule);
    if (!written) {
        return broke(run, "%s", error);
    }
    if (!chaos_log_open(&run->log, place->conductor_path)) {
        return broke(run, "cannot write %s: %s", place->conductor_path, strerror(errno));
    }
    struct chaos_backend_options nodes = {.nodes = (size_t)settings->nodes,
                                          .append_only = settings->append_only,
                                          .directory = place->directory,
                                          .server = options->server,
                                          .shim = place->shim,
                                          .compose_file = options->compose_file};
    run->backend = chaos_backend_create(options->backend, &nodes, error, sizeof error);
    if (run->backend == NULL || !run->backend->ops->start(run->backend, error, sizeof error)) {
        return broke(run, "%s", error);
    }
    run->links_started = chaos_links_start(&run->links, (size_t)settings->clients, (size_t)settings->nodes,
                                           run->backend->ports, error, sizeof error);
    if (!run->links_started) {
        return broke(run, "%s", error);
    }
    run->control = chaos_control_listen(place->directory, error, sizeof error);
    if (run->control < 0) {
        return broke(run, "%s", error);
    }
    log_start(run);
    struct chaos_clients_door door = {&run->crew, door_signal, door_spawn};
    run->nemesis = chaos_nemesis_new(run->backend, &run->links, &door, &run->log);
    return run->nemesis == NULL ? broke(run, "out of memory") : start_crew(run);
}

static void tell(const struct run *run, const char *what) {
    fprintf(stderr, "%7.3f s  %s\n", (double)(chaos_now_us() - run->start_us) / 1e6, what);
}

static bool begin_fault(struct run *run, const struct chaos_fault *fault, char *error, size_t error_size) {
    char text[CHAOS_FAULT_LINE_MAX];
    chaos_fault_describe(fault, run->backend->options.nodes, run->links.clients, text, sizeof text);
    tell(run, text);
    error[0] = '\0';
    bool worked = chaos_nemesis_begin(run->nemesis, fault, error, error_size);
    if (error[0] != '\0') {
        tell(run, error);
    }
    return worked;
}

static bool by_hand(void *ctx, const char *line, char *error, size_t error_size) {
    struct run *run = ctx;
    struct chaos_fault fault;
    if (run->state != RUNNING) {
        snprintf(error, error_size, "the experiment is ending");
        return false;
    }
    return chaos_fault_parse(line, run->backend->options.nodes, run->links.clients, &fault, error, error_size) &&
           begin_fault(run, &fault, error, error_size);
}

static void reap(struct run *run) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        bool auditor = pid == run->crew.auditor;
        if (chaos_crew_ended(&run->crew, pid, status) && !auditor) {
            continue;
        }
        if (run->state == BROKEN || run->state == DONE) {
            continue;
        }
        if (auditor) {
            broke(run, "the auditor ended by itself (its words are above)");
        } else if (pid == run->links.pid) {
            broke(run, "the link proxy ended by itself (its words are above)");
        } else {
            /* The backend itself waits for those that it ends. */
            broke(run, "the node with pid %d ended by itself: see its log in %s", (int)pid, run->place.directory);
        }
    }
    if (run->state == RUNNING && run->crew.crashes > CRASHES_MAX) {
        broke(run, "more than %d client processes ended by themselves", CRASHES_MAX);
    }
    /* One that crashed is started anew, for the others' sake: the violation is written down. */
    for (size_t c = 0; run->state == RUNNING && c < run->crew.client_count; c++) {
        if (run->crew.clients[c].pid == 0 && !chaos_nemesis_keeps_dead(run->nemesis, c)) {
            (void)chaos_crew_spawn(&run->crew, c);
        }
    }
}

static void to_ending(struct run *run, int64_t now_us) {
    run->state = ENDING;
    run->crew.ending = true;
    const struct chaos_settings *settings = &run->options->settings;
    run->state_end_us = now_us + (settings->wait_ms + 10 * settings->hold_ms + settings->ttl_ms + 10000) * 1000;
    for (size_t c = 0; c < run->crew.client_count; c++) {
        (void)chaos_crew_signal(&run->crew, c, SIGTERM);
    }
}

static void leave(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void leave(struct run *run, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(run->left, json_string(text));
}

/* Whether all nodes are empty; at the end of the time, what is left is told. */
static bool drained(struct run *run, bool last) {
    bool empty = true;
    for (size_t n = 0; n < run->backend->options.nodes; n++) {
        char error[512];
        int64_t keys = chaos_admin_key_count(run->backend->ports[n], error, sizeof error);
        empty &= keys == 0;
        if (last && keys > 0) {
            leave(run, "%" PRId64 " keys on node %zu, longer than the ttl after the last release", keys, n + 1);
        } else if (last && keys < 0) {
            leave(run, "node %zu could not be asked for its keys: %s", n + 1, error);
        }
    }
    return empty;
}

static void turn(struct run *run) {
    int64_t now_us = chaos_now_us();
    char error[700];
    if (run->state == RUNNING) {
        while (run->next < run->schedule.count &&
               run->start_us + run->schedule.faults[run->next].at_ms * 1000 <= now_us) {
            (void)begin_fault(run, &run->schedule.faults[run->next++], error, sizeof error);
        }
        if (now_us >= run->start_us + run_us(run)) {
            run->state = HEALING;
            run->state_end_us = now_us + HEAL_MS * INT64_C(1000);
            chaos_nemesis_heal(run->nemesis);
            tell(run, "its time is over: the faults end, then the clients");
        }
    }
    chaos_nemesis_turn(run->nemesis, now_us);
    if (run->state == HEALING && (chaos_nemesis_next_us(run->nemesis) == INT64_MAX || now_us >= run->state_end_us)) {
        to_ending(run, now_us);
    }
    if (run->state == ENDING && chaos_crew_running(&run->crew) > 0 && now_us >= run->state_end_us) {
        for (size_t c = 0; c < run->crew.client_count; c++) {
            if (run->crew.clients[c].pid != 0) {
                leave(run, "client %zu, which did not end when it was asked to", c + 1);
                (void)chaos_crew_signal(&run->crew, c, SIGKILL);
            }
        }
        run->state_end_us = INT64_MAX;
    }
    if (run->state == ENDING && chaos_crew_running(&run->crew) == 0) {
        run->state = DRAINING;
        run->state_end_us = now_us + (run->options->settings.ttl_ms + 2000) * 1000;
    }
    if (run->state == DRAINING && drained(run, now_us >= run->state_end_us)) {
        run->state = DONE;
    } else if (run->state == DRAINING && now_us >= run->state_end_us) {
        run->state = DONE;
    }
}

static int wait_ms(const struct run *run) {
    int64_t next_us = chaos_nemesis_next_us(run->nemesis);
    if (run->state == RUNNING) {
        int64_t end_us = run->start_us + run_us(run);
        if (run->next < run->schedule.count) {
            int64_t fault_us = run->start_us + run->schedule.faults[run->next].at_ms * 1000;
            next_us = fault_us < next_us ? fault_us : next_us;
        }
        next_us = end_us < next_us ? end_us : next_us;
    } else if (run->state_end_us < next_us) {
        next_us = run->state_end_us;
    }
    int64_t most_us = run->state == DRAINING ? 50000 : 1000000;
    int64_t left_us = next_us - chaos_now_us();
    return left_us <= 0 ? 0 : (int)((left_us < most_us ? left_us : most_us) + 999) / 1000;
}

static void take_signals(struct run *run) {
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD && run->state == RUNNING) {
            tell(run, "interrupted: what has been written down so far is judged");
            run->state = HEALING;
            run->state_end_us = chaos_now_us() + HEAL_MS * INT64_C(1000);
            chaos_nemesis_heal(run->nemesis);
        } else if (info.ssi_signo != SIGCHLD) {
            broke(run, "interrupted twice");
        }
    }
}

static void conduct(struct run *run) {
    while (run->state != DONE && run->state != BROKEN) {
        struct pollfd fds[2] = {{run->signals, POLLIN, 0}, {run->control, POLLIN, 0}};
        if (poll(fds, 2, wait_ms(run)) < 0 && errno != EINTR) {
            broke(run, "poll: %s", strerror(errno));
            return;
        }
        take_signals(run);
        reap(run);
        if (run->state != BROKEN && (fds[1].revents & POLLIN) != 0) {
            chaos_control_serve(run->control, by_hand, run);
        }
        if (run->state != BROKEN) {
            turn(run);
        }
    }
}

/* Ends what still runs; what cannot be ended is left. */
static void stop(struct run *run) {
    char *left = NULL;
    for (size_t c = 0; c < run->crew.client_count; c++) {
        if (run->crew.clients[c].pid != 0) {
            (void)chaos_crew_signal(&run->crew, c, SIGKILL);
        }
    }
    if (run->crew.auditor != 0) {
        (void)kill(run->crew.auditor, SIGTERM);
    }
    if (run->links_started) {
        chaos_links_stop(&run->links);
    }
    if (run->backend != NULL) {
        run->backend->ops->stop(run->backend, &left);
    }
    if (left != NULL) {
        leave(run, "%s", left);
        free(left);
    }
    /* The kernel ends who is dead to us; who is not there after a second is left behind. */
    int status;
    for (int tries = 0; tries < 200; tries++) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0) {
            return;
        }
        if (pid > 0) {
            (void)chaos_crew_ended(&run->crew, pid, status);
        } else {
            (void)poll(NULL, 0, 10);
        }
    }
    leave(run, "a process that did not end");
}

static void log_end(struct run *run) {
    int64_t counters[CHAOS_RESOURCES_MAX];
    char error[700];
    chaos_log_event(&run->log, chaos_now_us(), "left", "s:O", "what", run->left);
    if (!chaos_place_counters(&run->place, counters, error, sizeof error)) {
        broke(run, "%s", error);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < run->place.resource_count; i++) {
        json_array_append_new(list, json_integer(counters[i]));
    }
    chaos_log_event(&run->log, chaos_now_us(), "finish", "s:o", "counters", list);
}

/* Signals come as events; SIGPIPE is an error of the write. */
static bool take_over_signals(struct run *run) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return broke(run, "signals: %s", strerror(errno));
    }
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signals >= 0 || broke(run, "signalfd: %s", strerror(errno));
}

int chaos_run(const struct chaos_options *options) {
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        fputs("redlock-chaos: out of memory\n", stderr);
        return CHAOS_EXIT_BROKEN;
    }
    run->options = options;
    run->log.fd = run->control = run->signals = -1;
    run->left = json_array();
    if (take_over_signals(run) && make_schedule(run) && start(run)) {
        conduct(run);
    }
    bool whole = run->state == DONE;
    stop(run);
    if (whole) {
        log_end(run);
    }
    char error[700];
    int status = CHAOS_EXIT_BROKEN;
    chaos_log_close(&run->log);
    if (whole && !chaos_place_merge(&run->place, error, sizeof error)) {
        broke(run, "%s", error);
    }
    if (run->state == DONE) {
        status = chaos_judge(run->place.directory, options->slack_ms, true);
    } else {
        fprintf(stderr, "redlock-chaos: the experiment could not run: %s\n", run->error);
    }
    if (run->control >= 0) {
        close(run->control);
    }
    close(run->signals);
    chaos_nemesis_free(run->nemesis);
    chaos_backend_destroy(run->backend);
    chaos_schedule_clear(&run->schedule);
    chaos_place_clear(&run->place);
    json_decref(run->left);
    free(run);
    return status;
}
