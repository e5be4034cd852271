/* The conductor: starts everything, lets the schedule happen, ends everything, and judges what was
 * written down. */
#include "conductor/run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/admin.h"
#include "client/crew.h"
#include "conductor/run_state.h"
#include "faults/lists.h"
#include "values/clock.h"
#include "values/values.h"

/* AGAIN: timeout(1) sends one signal twice: to us, and to our group. QUEUES: a queue ends by itself
 * 15 s after the last who asked for a place in it (docs/waiting.md). ANSWER: on a busy machine, a
 * node may take long to say what it holds. */
enum {
    CRASHES_MAX = 20,
    HEAL_MS = 30000,
    AGAIN_US = 300000,
    QUEUES_US = 17000000,
    ANSWER_US = 10000000,
    DRAINED_EVERY_MS = 50
};

/* INT64_MAX: none is left. */
static int64_t next_fault_us(const struct chaos_run *run) {
    return run->next < run->schedule.count ? run->start_us + run->schedule.faults[run->next].at_ms * 1000 : INT64_MAX;
}

/* Told in the history's `left`. */
#define leave(run, ...) ((void)json_array_append_new((run)->left, json_sprintf(__VA_ARGS__)))

static void tell(const struct chaos_run *run, const char *what) {
    fprintf(stderr, "%7.3f s  %s\n", (double)(tool_now_us() - run->start_us) / 1e6, what);
}

static bool begin_fault(struct chaos_run *run, const struct chaos_fault *fault, struct chaos_error *error) {
    char text[CHAOS_FAULT_LINE_MAX];
    chaos_fault_describe(fault, run->backend->options.nodes, run->links.clients, text, sizeof text);
    tell(run, text);
    error->text[0] = '\0';
    bool worked = chaos_nemesis_begin(run, fault, error);
    if (error->text[0] != '\0') {
        tell(run, error->text);
    }
    return worked;
}

bool chaos_run_by_hand(struct chaos_run *run, const char *line, struct chaos_error *error) {
    struct chaos_fault fault;
    if (run->state != CHAOS_RUNNING) {
        return chaos_fail(error, "the experiment is ending");
    }
    return chaos_fault_parse(line, run->backend->options.nodes, run->links.clients, &fault, error) &&
           begin_fault(run, &fault, error);
}

/* Says which process ended by itself, and how. What it said itself stands above. */
static void tell_end(struct chaos_run *run, pid_t pid, int status, bool auditor) {
    const char *how = WIFSIGNALED(status)
                          ? TOOL_TEXT(80, "signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)))
                          : TOOL_TEXT(80, "status %d", WEXITSTATUS(status));
    char who[40] = "a process of a node";
    if (auditor || pid == run->links.proxy.pid) {
        tool_text(who, sizeof who, "the %s", auditor ? "auditor" : "link proxy");
    }
    for (size_t n = 0; n < run->backend->options.nodes; n++) {
        if (run->backend->pids[n] == pid) {
            snprintf(who, sizeof who, "node %zu", n + 1);
        }
    }
    chaos_run_broke(run, "%s (pid %d) ended by itself: %s; the nodes' logs are in %s/node-*", who, (int)pid, how,
                    run->place.directory);
}

static void reap(struct chaos_run *run) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        bool auditor = pid == run->crew.auditor, client = chaos_crew_ended(&run->crew, pid, status) && !auditor;
        /* The backend itself waits for those that it ends. */
        if (!client && run->state != CHAOS_BROKEN && run->state != CHAOS_DONE) {
            tell_end(run, pid, status, auditor);
        }
    }
    if (run->state == CHAOS_RUNNING && run->crew.crashes > CRASHES_MAX) {
        chaos_run_broke(run, "more than %d client processes ended by themselves", CRASHES_MAX);
    }
    /* Start a crashed client again, so that the run goes on. The violation is recorded. */
    for (size_t c = 0; run->state == CHAOS_RUNNING && c < run->crew.client_count; c++) {
        if (run->crew.clients[c].pid == 0 && !chaos_nemesis_keeps_dead(run, c)) {
            (void)chaos_crew_spawn(&run->crew, c);
        }
    }
}

static void to_healing(struct chaos_run *run, int64_t now_us, const char *why) {
    tell(run, why);
    run->state = CHAOS_HEALING;
    run->state_end_us = now_us + HEAL_MS * INT64_C(1000);
    chaos_nemesis_heal(run);
}

static void to_ending(struct chaos_run *run, int64_t now_us) {
    run->state = CHAOS_ENDING;
    run->crew.ending = true;
    const struct chaos_settings *settings = &run->options->settings;
    run->state_end_us = now_us + (settings->wait_ms + 10 * settings->hold_ms + settings->ttl_ms + 10000) * 1000;
    for (size_t c = 0; c < run->crew.client_count; c++) {
        (void)chaos_crew_signal(&run->crew, c, SIGTERM);
    }
}

/* Whether all nodes are empty, or what is left was told: locks once the longest ttl is over, queues
 * once theirs is. */
static bool drained(struct chaos_run *run, int64_t now_us) {
    const bool last = now_us >= run->state_end_us, queues = !last || now_us >= run->queues_end_us;
    bool empty = true, answered = true;
    int64_t keys[CHAOS_NODES_MAX];
    struct chaos_error errors[CHAOS_NODES_MAX];
    for (size_t n = 0; n < run->backend->options.nodes; n++) {
        keys[n] = chaos_admin_key_count(run->backend->ports[n], queues, &errors[n]);
        empty &= keys[n] == 0;
        answered &= keys[n] >= 0;
    }
    if (!last || (!answered && now_us < run->state_end_us + ANSWER_US)) {
        return empty;
    }
    for (size_t n = 0; n < run->backend->options.nodes; n++) {
        if (keys[n] > 0) {
            leave(run, "%" PRId64 " keys on node %zu, longer than the ttl after the last release", keys[n], n + 1);
        } else if (keys[n] < 0) {
            leave(run, "node %zu could not be asked for its keys: %s", n + 1, errors[n].text);
        }
    }
    if (empty && !queues) {
        run->state_end_us = run->queues_end_us;
        return false;
    }
    return true;
}

static void turn(struct chaos_run *run) {
    int64_t now_us = tool_now_us();
    struct chaos_error error;
    if (run->state == CHAOS_RUNNING) {
        while (next_fault_us(run) <= now_us) {
            (void)begin_fault(run, &run->schedule.faults[run->next++], &error);
        }
        if (now_us >= run->state_end_us) {
            to_healing(run, now_us, "its time is over: the faults end, then the clients");
        }
    }
    chaos_nemesis_turn(run, now_us);
    if (run->state == CHAOS_HEALING && (chaos_nemesis_next_us(run) == INT64_MAX || now_us >= run->state_end_us)) {
        to_ending(run, now_us);
    }
    if (run->state == CHAOS_ENDING && chaos_crew_running(&run->crew) > 0 && now_us >= run->state_end_us) {
        for (size_t c = 0; c < run->crew.client_count; c++) {
            if (chaos_crew_signal(&run->crew, c, SIGKILL)) {
                leave(run, "client %zu, which did not end when it was asked to", c + 1);
            }
        }
        run->state_end_us = INT64_MAX;
    }
    if (run->state == CHAOS_ENDING && chaos_crew_running(&run->crew) == 0) {
        run->state = CHAOS_DRAINING;
        run->state_end_us =
            now_us +
            (run->options->settings.ttl_ms * 3 / 2 + run->options->settings.protection.lock_delay_ms + 2000) * 1000;
        run->queues_end_us = now_us + QUEUES_US;
    }
    if (run->state == CHAOS_DRAINING && drained(run, now_us)) {
        run->state = CHAOS_DONE;
    }
}

static int wait_ms(const struct chaos_run *run) {
    if (run->state == CHAOS_DRAINING) {
        return DRAINED_EVERY_MS;
    }
    int64_t now_us = tool_now_us();
    int64_t next_us = chaos_least(chaos_nemesis_next_us(run), chaos_least(run->state_end_us, now_us + 1000000));
    if (run->state == CHAOS_RUNNING) {
        next_us = chaos_least(next_us, next_fault_us(run));
    }
    return next_us <= now_us ? 0 : (int)((next_us - now_us + 999) / 1000);
}

static void take_signals(struct chaos_run *run) {
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD && run->state == CHAOS_RUNNING) {
            run->interrupted_us = tool_now_us();
            to_healing(run, run->interrupted_us, "interrupted: what has been written down so far is judged");
        } else if (info.ssi_signo != SIGCHLD && tool_now_us() - run->interrupted_us >= AGAIN_US) {
            chaos_run_broke(run, "interrupted twice");
        }
    }
}

static bool log_works(struct chaos_run *run) {
    return run->log.error[0] == '\0' ||
           chaos_run_broke(run, "%s: %s", run->place.paths[CHAOS_FILE_CONDUCTOR], run->log.error);
}

static void conduct(struct chaos_run *run) {
    while (run->state != CHAOS_DONE && run->state != CHAOS_BROKEN) {
        struct pollfd fds[2] = {{run->signals, POLLIN, 0}, {run->control, POLLIN, 0}};
        if (poll(fds, 2, wait_ms(run)) < 0 && errno != EINTR) {
            chaos_run_broke(run, "poll: %s", strerror(errno));
            return;
        }
        take_signals(run);
        reap(run);
        if (run->state != CHAOS_BROKEN && (fds[1].revents & POLLIN) != 0) {
            chaos_control_serve(run);
        }
        if (run->state != CHAOS_BROKEN) {
            turn(run);
            (void)log_works(run);
        }
    }
}

/* The end of the history, which is joined then. */
static bool write_end(struct chaos_run *run) {
    int64_t counters[CHAOS_RESOURCES_MAX];
    chaos_log_event(&run->log, tool_now_us(), "left", "s:O", "what", run->left);
    if (!chaos_place_counters(&run->place, counters, &run->error)) {
        return false;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < run->place.resource_count; i++) {
        json_array_append_new(list, json_integer(counters[i]));
    }
    chaos_log_event(&run->log, tool_now_us(), "finish", "s:o", "counters", list);
    return log_works(run) && chaos_place_merge(&run->place, &run->error);
}

/* Ends what still runs; what cannot be ended is left. */
static void stop(struct chaos_run *run) {
    struct chaos_error left;
    for (size_t c = 0; c < run->crew.client_count; c++) {
        (void)chaos_crew_signal(&run->crew, c, SIGKILL);
    }
    if (run->crew.auditor != 0) {
        (void)kill(run->crew.auditor, SIGTERM);
    }
    if (run->links_started) {
        chaos_links_stop(&run->links);
    }
    if (run->backend != NULL && !run->backend->ops->stop(run->backend, &left)) {
        leave(run, "%s", left.text);
    }
    /* A process that is still there after two seconds does not obey. */
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
    if (run->crew.auditor != 0) {
        leave(run, "the auditor (pid %d), which did not end when it was asked to", (int)run->crew.auditor);
        (void)kill(run->crew.auditor, SIGKILL);
    } else {
        leave(run, "a process that did not end");
    }
}

/* A run that never began leaves only the nodes' logs, which say why. */
static int tell_broken(struct chaos_run *run) {
    fprintf(stderr, "redlock-chaos: the experiment could not run: %s\n", run->error.text);
    if (run->start_us == 0) {
        chaos_place_discard(&run->place);
    } else {
        fprintf(stderr, "redlock-chaos: what was written down before is in %s\n", run->place.directory);
    }
    return CHAOS_EXIT_BROKEN;
}

/* Only reading is left, so signals end the program as usual. Those that have come asked for the end
 * of the run, which is here: `timeout` sends each of them twice. */
static int judge_own(struct chaos_run *run) {
    struct signalfd_siginfo info;
    sigset_t none;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    return chaos_judge(run->place.directory, run->options->slack_ms, true, false);
}

int chaos_run(const struct chaos_options *options, bool *interrupted) {
    struct chaos_run run = {.options = options, .log.fd = -1, .control = -1, .signals = -1, .left = json_array()};
    if (chaos_run_start(&run)) {
        conduct(&run);
    }
    bool whole = run.state == CHAOS_DONE;
    stop(&run);
    if (run.control >= 0) {
        chaos_control_close(run.place.directory, run.control);
    }
    /* From here on the end of memory ends the program: nothing may be left. */
    whole = whole && write_end(&run);
    chaos_log_close(&run.log);
    int status = whole ? judge_own(&run) : tell_broken(&run);
    *interrupted = run.interrupted_us != 0;
    close(run.signals);
    chaos_nemesis_close(&run);
    chaos_backend_destroy(run.backend);
    chaos_schedule_clear(&run.schedule);
    chaos_place_clear(&run.place);
    json_decref(run.left);
    return status;
}
