/* Starts an experiment: its directory, nodes, links, and clients. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "backends/admin.h"
#include "conductor/run_state.h"
#include "values/clock.h"

enum { SWEEP_MS = 50, SWEEP_TIMEOUT_MS = 40 };

static bool has(const struct chaos_schedule *schedule, enum chaos_fault_kind kind) {
    size_t i = 0;
    while (i < schedule->count && schedule->faults[i].kind != kind) {
        i++;
    }
    return i < schedule->count;
}

/* A fault that never begins shows nothing, and nobody would notice. Faults come by time. */
static bool all_begin(struct chaos_run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_schedule *schedule = &run->schedule;
    int64_t seconds = options->settings.seconds;
    int64_t last_ms = schedule->count == 0 ? 0 : schedule->faults[schedule->count - 1].at_ms;
    if (has(schedule, CHAOS_FAULT_DROP) && strcmp(options->backend, "compose") != 0) {
        return chaos_run_broke(run,
                               "the schedule %s: drop: processes have no network of their own; use --backend compose",
                               options->schedule);
    }
    return last_ms < seconds * 1000 || chaos_run_broke(run,
                                                       "the schedule %s: a fault at %" PRId64
                                                       " ms would never begin, for the run ends after %" PRId64
                                                       " s: let it run longer with --seconds",
                                                       options->schedule, last_ms, seconds);
}

static bool make_schedule(struct chaos_run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_settings *settings = &options->settings;
    struct chaos_error error;
    if (options->schedule != NULL) {
        char *text = chaos_place_read(options->schedule, &error);
        bool worked = text != NULL && chaos_schedule_parse(text, (size_t)settings->nodes, (size_t)settings->clients,
                                                           &run->schedule, &error);
        free(text);
        return worked ? all_begin(run) : chaos_run_broke(run, "the schedule %s: %s", options->schedule, error.text);
    }
    if (options->experiment != NULL && !options->kinds_given) {
        return chaos_experiment_schedule(options->experiment, settings, (uint64_t)options->seed, &run->schedule,
                                         &error) ||
               chaos_run_broke(run, "%s: %s", options->experiment->name, error.text);
    }
    struct chaos_schedule_shape shape = chaos_settings_shape(settings, options->kinds);
    chaos_schedule_random((uint64_t)options->seed, &shape, &run->schedule);
    return true;
}

static void log_start(struct chaos_run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_settings *settings = &options->settings;
    json_t *resources = json_array();
    for (size_t i = 0; i < run->place.resource_count; i++) {
        json_array_append_new(resources, json_string(run->place.resources[i]));
    }
    run->start_us = tool_now_us();
    run->state_end_us = run->start_us + settings->seconds * 1000000;
    char version[64] = "?";
    chaos_admin_version(run->backend->ports[0], version, sizeof version, NULL);
    const struct chaos_protection *protection = &settings->protection;
    chaos_log_event(&run->log, run->start_us, "start",
                    "s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:o,s:I,s:I,s:I,s:b,s:b,s:b,s:b,s:b,s:s,s:b,s:b,s:b,s:I,s:I,s:I",
                    "version", version, "command", options->command_line, "backend", options->backend, "experiment",
                    options->experiment == NULL ? "" : options->experiment->name, "seed", (json_int_t)options->seed,
                    "nodes", (json_int_t)settings->nodes, "clients", (json_int_t)settings->clients, "resources",
                    resources, "ttl_ms", (json_int_t)settings->ttl_ms, "node_timeout_ms",
                    (json_int_t)settings->node_timeout_ms, "wait_ms", (json_int_t)settings->wait_ms,
                    "breaks_assumptions", (int)chaos_schedule_breaks(&run->schedule, settings->append_only),
                    "memoryless", (int)!settings->append_only, "polls", (int)settings->polls, "tls", (int)settings->tls,
                    "fencing", (int)protection->fencing, "restart_guard",
                    chaos_restart_guard_name(protection->restart_guard), "clock_guard", (int)protection->clock_guard,
                    "first_boot", (int)protection->first_boot, "no_heal", (int)protection->no_heal, "ttl_max_ms",
                    (json_int_t)protection->ttl_max_ms, "lock_delay_ms", (json_int_t)protection->lock_delay_ms,
                    "readers", (json_int_t)settings->readers);
}

/* What clients are to be told at the begin, they are told before they run. */
static void configure_first(struct chaos_run *run) {
    const struct chaos_schedule *schedule = &run->schedule;
    struct chaos_error error;
    while (run->next < schedule->count && schedule->faults[run->next].at_ms == 0 &&
           schedule->faults[run->next].kind == CHAOS_FAULT_CONFIGURE) {
        (void)chaos_nemesis_begin(run, &schedule->faults[run->next++], &error);
    }
}

static bool start_crew(struct chaos_run *run) {
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
                                                           .log_path = run->place.paths[CHAOS_FILE_AUDITOR]};
    if (!chaos_crew_spawn_auditor(crew)) {
        return chaos_run_broke(run, "cannot start the auditor: %s", strerror(errno));
    }
    for (size_t c = 0; c < crew->client_count; c++) {
        for (size_t n = 0; n < (size_t)settings->nodes; n++) {
            snprintf(run->uris[c][n], sizeof run->uris[c][n], "%s://127.0.0.1:%d", settings->tls ? "rediss" : "redis",
                     run->links.ports[c][n]);
            run->nodes[c][n] = run->uris[c][n];
        }
        crew->client[c] = (struct chaos_client_options){.client = c,
                                                        .seed = (uint64_t)options->seed,
                                                        .nodes = run->nodes[c],
                                                        .node_count = (size_t)settings->nodes,
                                                        .ca_file = settings->tls ? run->backend->certificate : NULL,
                                                        .setup = chaos_setup_default((size_t)settings->nodes),
                                                        .resources = run->place.resources,
                                                        .resource_count = run->place.resource_count,
                                                        .log_path = run->place.paths[CHAOS_FILE_CLIENTS + c],
                                                        .counters_path = run->place.paths[CHAOS_FILE_COUNTERS],
                                                        .settings = settings};
    }
    configure_first(run);
    for (size_t c = 0; c < crew->client_count; c++) {
        if (!chaos_crew_spawn(crew, c)) {
            return chaos_run_broke(run, "cannot start client %zu: %s", c + 1, strerror(errno));
        }
    }
    return true;
}

/* A fault that could not happen would leave a run without violations that proves nothing. */
static bool has_clocks(struct chaos_run *run) {
    bool moves = has(&run->schedule, CHAOS_FAULT_CLOCK_JUMP) || has(&run->schedule, CHAOS_FAULT_CLOCK_SKEW);
    return !moves || run->place.shim != NULL ||
           chaos_run_broke(
               run, "there is no clock to move: libredlock_chaos_clock.so, which is preloaded into the servers, is not "
                    "where it is installed, or cannot be read; say by REDLOCK_CHAOS_SHIM where it is");
}

/* Whether packets can be dropped at all, if they are to be: before anything depends on it. */
static bool prove_drop(struct chaos_run *run) {
    struct chaos_backend *backend = run->backend;
    struct chaos_error error;
    return !has(&run->schedule, CHAOS_FAULT_DROP) ||
           (backend->ops->lose(backend, 0, true, &error) && backend->ops->lose(backend, 0, false, &error)) ||
           chaos_run_broke(run, "drop: %s", error.text);
}

static bool write_schedule(struct chaos_run *run) {
    const struct chaos_settings *settings = &run->options->settings;
    const char *path = run->place.paths[CHAOS_FILE_SCHEDULE];
    char *schedule = chaos_schedule_format(&run->schedule, (size_t)settings->nodes, (size_t)settings->clients);
    FILE *out = fopen(path, "we");
    bool written = out != NULL && fputs(schedule, out) >= 0;
    free(schedule);
    written = (out == NULL || fclose(out) == 0) && written;
    return written || chaos_run_broke(run, "cannot write %s: %s", path, strerror(errno));
}

static bool start_parts(struct chaos_run *run) {
    const struct chaos_options *options = run->options;
    const struct chaos_settings *settings = &options->settings;
    struct chaos_place *place = &run->place;
    struct chaos_error *error = &run->error;
    /* Two descriptors a link in the proxy. Where the limit is too low, the proxy says so. */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!chaos_place_make(place, options, error) || !has_clocks(run) || !write_schedule(run)) {
        return false;
    }
    if (!chaos_log_open(&run->log, place->paths[CHAOS_FILE_CONDUCTOR])) {
        return chaos_run_broke(run, "cannot write %s: %s", place->paths[CHAOS_FILE_CONDUCTOR], strerror(errno));
    }
    run->log.goes_on = true; /* whose failure ends the run, but not before its nodes are ended */
    struct chaos_backend_options nodes = {.nodes = (size_t)settings->nodes,
                                          .append_only = settings->append_only,
                                          .tls = settings->tls,
                                          .directory = place->directory,
                                          .server = options->server,
                                          .shim = place->shim,
                                          .compose_file = options->compose_file};
    run->backend = chaos_backend_create(options->backend, &nodes, error);
    if (run->backend == NULL || !run->backend->ops->start(run->backend, error) || !prove_drop(run)) {
        return false;
    }
    run->links_started = chaos_links_start(&run->links, (size_t)settings->clients, nodes.nodes,
                                           settings->tls ? run->backend->tls_ports : run->backend->ports, error);
    run->control = run->links_started ? chaos_control_listen(place->directory, error) : -1;
    if (run->control < 0) {
        return false;
    }
    log_start(run);
    fprintf(stderr, "redlock-chaos: the seed is %" PRId64 ", the directory %s\n", options->seed, place->directory);
    return start_crew(run);
}

/*
 * Signals come as events, and SIGPIPE as an error of the write. If SIGCHLD were ignored, as a
 * parent may have set it, there would be no child to wait for. The terminal sends SIGHUP to all its
 * processes, but only we may end the clients: they ignore it, and we block and read it. Under nohup
 * it means nothing.
 */
static bool take_over_signals(struct chaos_run *run) {
    static bool asked, hangup_ends; /* a comparison runs more than once */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    hangup_ends = asked ? hangup_ends : signal(SIGHUP, SIG_IGN) != SIG_IGN;
    asked = true;
    if (hangup_ends) {
        sigaddset(&set, SIGHUP);
    }
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGCHLD, SIG_DFL) == SIG_ERR ||
        sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return chaos_run_broke(run, "signals: %s", strerror(errno));
    }
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signals >= 0 || chaos_run_broke(run, "signalfd: %s", strerror(errno));
}

bool chaos_run_start(struct chaos_run *run) {
    /* The schedule first: where it is typed in, Ctrl-C ends that. */
    bool started = make_schedule(run) && take_over_signals(run) && start_parts(run);
    run->state = started ? run->state : CHAOS_BROKEN; /* run->error says why */
    return started;
}
