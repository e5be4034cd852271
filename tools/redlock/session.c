/* One manager on one loop; makes requests one after another, and runs the loop until each
 * completes. */
#include "session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <redlock/telemetry.h>

#include "holders.h"
#include "nodes.h"
#include "reload.h"
#include "report.h"
#include "usage.h"
#include "values/clock.h"
#include "values/values.h"

/* How long to wait for the other nodes after a quorum is ready. */
#define CONNECT_SLICE_MS INT64_C(50)
/* A slice that ends this much early ends because every node is ready or has failed, not because its
 * timer was a bit fast. */
#define TIMER_SLACK_MS INT64_C(5)
/* Explain the wait after this long without a quorum. */
#define EXPLAIN_AFTER_S 1.

int64_t tool_session_age_ms(const struct tool_session *session) {
    return tool_now_ms() - session->opened_ms;
}

int64_t tool_session_held_ms(const struct tool_session *session) {
    return tool_now_ms() - session->acquired_ms;
}

static void log_line(redlock_log_level level, const char *line, void *data) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    static const enum tool_words_level levels[] = {TOOL_WORDS_ERROR, TOOL_WORDS_WARNING, TOOL_WORDS_INFO,
                                                   TOOL_WORDS_DEBUG};
    tool_report_line(((const struct tool_session *)data)->options, levels[level], TOOL_WORDS_LOG, "log", names[level],
                     TOOL_TEXT(16, "%s: ", names[level]), line);
}

static void note_renewal(const redlock_telemetry_event *event, void *data) {
    struct tool_session *session = data;
    if (event->kind == REDLOCK_TELEMETRY_EXTENDED || event->kind == REDLOCK_TELEMETRY_ACQUIRED) {
        snprintf(session->renewal_failed, sizeof session->renewal_failed, "%s", event->reason);
    }
}

static void stop_asked(struct ev_loop *loop, ev_signal *watcher, int events) {
    (void)events;
    struct tool_session *session = watcher->data;
    if (session->stop_signal == 0) {
        session->stop_signal = watcher->signum;
    }
    if (session->request != NULL) {
        redlock_request_cancel(session->request);
    }
    /* Pending requests end within the node timeout. A second signal ends the tool at once. */
    ev_signal_stop(loop, watcher);
}

void tool_session_watch_stop(struct tool_session *session) {
    static const int numbers[TOOL_STOP_SIGNALS] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (int i = 0; i < TOOL_STOP_SIGNALS; i++) {
        ev_signal *watcher = &session->stop_watchers[i];
        ev_signal_init(watcher, stop_asked, numbers[i]);
        watcher->data = session;
        /* A signal that was ignored at our start (nohup) stays ignored. */
        if (!session->signals->ignored[numbers[i]]) {
            ev_signal_start(session->loop, watcher);
        }
    }
}

static void drop_signal(struct ev_loop *loop, ev_signal *watcher, int events) {
    (void)loop, (void)watcher, (void)events;
}

/* These are for the command of run or elect. They must not end us where there is none yet. */
static void keep_from_command_signals(struct tool_session *session) {
    static const int numbers[TOOL_COMMAND_SIGNALS] = {SIGUSR1, SIGUSR2, SIGALRM};
    const struct tool_options *options = session->options;
    const bool has_command = options->command == TOOL_RUN || (options->command == TOOL_ELECT && !options->observe);
    for (int i = 0; i < TOOL_COMMAND_SIGNALS; i++) {
        ev_signal_init(&session->command_watchers[i], drop_signal, numbers[i]);
        if (has_command && !session->signals->ignored[numbers[i]]) {
            ev_signal_start(session->loop, &session->command_watchers[i]);
        }
    }
}

/* Names what the user has given: the option in place of the library's, and for "node 2: …" and
 * "nodes 1 and 2 …" the lines, if the nodes are from a file. */
static int report_bad_input(const struct tool_options *options, const char *error) {
    const unsigned *lines = options->node_lines;
    unsigned one = 0;
    unsigned other = 0;
    int length = 0;
    const int status = tool_options_refused(options, error);
    if (status != 0) {
        return status;
    }
    if (options->nodes_file == NULL) {
        return tool_usage(options, "%s", error);
    }
    if (sscanf(error, "node %u%n", &one, &length) == 1 && one > 0 && one <= options->node_count &&
        error[length] == ':') {
        return tool_usage(options, "line %u of %.400s%s", lines[one - 1], options->nodes_file, error + length);
    }
    if (sscanf(error, "nodes %u and %u%n", &one, &other, &length) == 2 && one > 0 && one <= options->node_count &&
        other > 0 && other <= options->node_count) {
        return tool_usage(options, "lines %u and %u of %.400s%s", lines[one - 1], lines[other - 1], options->nodes_file,
                          error + length);
    }
    return tool_usage(options, "%s", error);
}

/* Without two descriptors, libev would end the process by abort(). */
static bool may_open_two(void) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return false;
    }
    (void)close(fds[0]);
    (void)close(fds[1]);
    return true;
}

int tool_session_open(struct tool_session *session, const struct tool_options *options,
                      const struct tool_signals *signals) {
    *session = (struct tool_session){.options = options, .signals = signals, .opened_ms = tool_now_ms()};
    session->slot_count = options->slot_count;
    memcpy(session->slots, options->slots, sizeof session->slots);
    if (!may_open_two()) {
        return tool_report_system(options, "cannot open what an event loop needs: %s (see ulimit -n)", strerror(errno));
    }
    session->loop = ev_default_loop(EVFLAG_AUTO);
    if (session->loop == NULL) {
        return tool_report_system(options, "libev cannot make an event loop");
    }
    redlock_manager_options manager_options = options->manager;
    manager_options.nodes = options->nodes;
    manager_options.node_count = options->node_count;
    manager_options.tls = options->tls_given ? &options->tls_options : NULL;
    if (options->verbose) {
        manager_options.on_log = log_line;
        manager_options.log_data = session;
        manager_options.log_level = REDLOCK_LOG_DEBUG;
    }
    manager_options.on_event = note_renewal;
    manager_options.event_data = session;
    manager_options.listen = options->command == TOOL_STATUS;
    char error[512] = "";
    int code = redlock_manager_create(session->loop, &manager_options, &session->manager, error, sizeof error);
    if (code == REDLOCK_ERR_INVALID) {
        return report_bad_input(options, error);
    }
    if (code != REDLOCK_OK) {
        tool_report_error(options, redlock_error_name(code), "%s", error[0] != '\0' ? error : redlock_strerror(code));
        return tool_report_exit_status(options, code);
    }
    tool_session_watch_stop(session);
    keep_from_command_signals(session);
    return 0;
}

void tool_session_completed(const redlock_result *result, void *data) {
    struct tool_session *session = data;
    session->done = true;
    session->request = NULL;
    session->code = redlock_result_code(result);
    session->lease = redlock_result_lease(result);
    session->result = redlock_result_copy(result);
}

void tool_session_prepare(struct tool_session *session) {
    redlock_result_free(session->result);
    session->result = NULL;
    session->lease = NULL;
    session->done = false;
}

int tool_session_finish(struct tool_session *session, int started) {
    tool_session_prepare(session);
    session->code = started;
    while (started == REDLOCK_OK && !session->done) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    return session->code;
}

int tool_session_release(struct tool_session *session, redlock_lease *lease) {
    return tool_session_finish(session, redlock_release(lease, tool_session_completed, session));
}

void tool_session_connect(struct tool_session *session, bool everyone) {
    int64_t timeout_ms = session->options->manager.connect_timeout_ms;
    int64_t slice_ms = timeout_ms < CONNECT_SLICE_MS ? timeout_ms : CONNECT_SLICE_MS;
    /* The nodes' own timeouts are a little later than ours, and say why. */
    int64_t over_ms = tool_now_ms() + timeout_ms + CONNECT_SLICE_MS;
    bool finished = false;
    while (!finished && session->stop_signal == 0) {
        int64_t begun_ms = tool_now_ms();
        int code = tool_session_finish(
            session, redlock_manager_connect(session->manager, slice_ms, tool_session_completed, session));
        int64_t ended_ms = tool_now_ms();
        bool enough = code == REDLOCK_OK && !everyone;
        bool over = ended_ms >= over_ms;
        bool all_tried = ended_ms - begun_ms < slice_ms - TIMER_SLACK_MS;
        finished = enough || over || all_tried || (code != REDLOCK_OK && code != REDLOCK_ERR_NO_QUORUM);
    }
}

int tool_session_stopped(struct tool_session *session) {
    if (session->lease != NULL) {
        (void)tool_session_release(session, session->lease);
    }
    tool_report_error(session->options, redlock_error_name(REDLOCK_ERR_CANCELLED),
                      "stopped by signal %d (%s) before it finished", session->stop_signal,
                      strsignal(session->stop_signal));
    return TOOL_EXIT_SIGNAL_BASE + session->stop_signal;
}

static void explain_wait(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct tool_session *session = watcher->data;
    size_t quorum = redlock_manager_quorum(session->manager);
    char summary[TOOL_NODES_SUMMARY_SIZE];
    if (tool_nodes_summary(session, summary, sizeof summary) < quorum) {
        tool_report_warn(session->options, redlock_error_name(REDLOCK_ERR_NO_QUORUM),
                         "no quorum for '%s' yet: %s; %zu are needed; still trying", session->options->name, summary,
                         quorum);
        ev_timer_stop(loop, watcher);
    }
}

/* Returns a code of the library. */
static int start(struct tool_session *session, redlock_acquire_options *options) {
    const redlock_item *items = session->options->items;
    if (session->options->item_count > 1) {
        return redlock_acquire_all(session->manager, items, session->options->item_count, options, &session->request,
                                   tool_session_completed, session);
    }
    options->mode = items[0].mode;
    return redlock_acquire(session->manager, items[0].resource, options, &session->request, tool_session_completed,
                           session);
}

/* Asks for the lock until it is held, the wait is over or a signal comes. Returns the request's
 * code. */
static int ask(struct tool_session *session, bool auto_extend, redlock_lost_callback on_lost, void *data) {
    redlock_acquire_options options = session->options->lock;
    if (options.wait_timeout_ms > 0) {
        int64_t spent_ms = tool_session_age_ms(session);
        options.wait_timeout_ms = options.wait_timeout_ms > spent_ms ? options.wait_timeout_ms - spent_ms : 0;
    }
    options.auto_extend = auto_extend;
    options.on_lost = on_lost;
    options.lost_data = data;
    if (session->options->verbose) {
        log_line(REDLOCK_LOG_INFO, TOOL_TEXT(REDLOCK_RESOURCE_SIZE_MAX + 64, "asking for '%s'", session->options->name),
                 session);
    }
    const int64_t asked_ms = tool_now_ms();
    const int code = tool_session_finish(session, start(session, &options));
    session->acquired_ms = tool_now_ms();
    session->waited_ms = session->acquired_ms - asked_ms;
    return code;
}

/* Starts the thread that writes to standard error, so that no reader can block a renewal. */
static int free_from_readers(const struct tool_options *options) {
    int error = tool_words_start(options->words, options->json);
    return error == 0 ? 0
                      : tool_report_system(options, "cannot start the thread that writes to standard error: %s",
                                           strerror(error));
}

int tool_session_begin(struct tool_session *session, bool waits) {
    int status = free_from_readers(session->options);
    if (status == 0) {
        if (waits || session->options->command != TOOL_ACQUIRE) {
            tool_reload_begin(session);
        }
        ev_timer_init(&session->explain_timer, explain_wait, EXPLAIN_AFTER_S, EXPLAIN_AFTER_S);
        session->explain_timer.data = session;
        if (waits) {
            ev_timer_start(session->loop, &session->explain_timer);
        }
        tool_session_connect(session, false);
        tool_session_prepare(session);
    }
    return status;
}

void tool_session_stop_explaining(struct tool_session *session) {
    ev_timer_stop(session->loop, &session->explain_timer);
}

static void note_holder(const redlock_result *result, void *data) {
    struct tool_session *session = data;
    struct tool_holders holders =
        tool_holders_of(result, redlock_manager_node_count(session->manager), redlock_manager_quorum(session->manager));
    if (holders.verdict == TOOL_HELD) {
        snprintf(session->held_by, sizeof session->held_by, "%s", redlock_token_holder(holders.token));
        session->held_for_ms = holders.remaining_ms;
        session->readers = holders.readers;
    }
    session->done = true;
}

/* For the report. Keeps the result of the acquire. */
static void ask_who_holds_it(struct tool_session *session) {
    /* Of several, that which was missing. */
    const char *missing = session->result != NULL ? redlock_result_resource(session->result) : "";
    session->done = false;
    int started = redlock_inspect(session->manager, missing[0] != '\0' ? missing : session->options->resource,
                                  note_holder, session);
    while (started == REDLOCK_OK && !session->done) {
        ev_run(session->loop, EVRUN_ONCE);
    }
}

bool tool_session_acquire(struct tool_session *session, bool auto_extend, redlock_lost_callback on_lost, void *data,
                          int *status) {
    int code = REDLOCK_ERR_CANCELLED;
    *status = tool_session_begin(session, session->options->lock.wait_timeout_ms != 0);
    if (*status != 0) {
        return false;
    }
    if (session->stop_signal == 0) {
        code = ask(session, auto_extend, on_lost, data);
    }
    tool_session_stop_explaining(session);
    if (session->stop_signal != 0) {
        *status = tool_session_stopped(session);
        return false;
    }
    if (code != REDLOCK_OK) {
        const bool is_expected = code == REDLOCK_ERR_CONTENDED && tool_options_expect_contended(session->options);
        if (code == REDLOCK_ERR_CONTENDED && !is_expected && session->options->lock.permits == 0 &&
            !session->options->json && !session->options->quiet) {
            ask_who_holds_it(session);
        }
        if (session->stop_signal != 0) {
            *status = tool_session_stopped(session);
            return false;
        }
        *status = tool_report_not_acquired(session);
        tool_nodes_warn(session, is_expected);
        return false;
    }
    session->slot_count = redlock_lease_slots(session->lease, session->slots, REDLOCK_PERMITS_MAX);
    return true;
}

void tool_session_ignore_stop(struct tool_session *session) {
    for (int i = 0; i < TOOL_STOP_SIGNALS; i++) {
        ev_signal_stop(session->loop, &session->stop_watchers[i]);
    }
}

int tool_session_adopt(struct tool_session *session, const redlock_item *items, size_t count, redlock_lease **lease) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.ttl_ms = session->options->lock.ttl_ms;
    options.lock_delay_ms = session->options->lock.lock_delay_ms;
    if (count > 1) {
        return redlock_adopt_all(session->manager, items, count, &options, lease);
    }
    options.mode = items[0].mode;
    if (session->slot_count > 0) {
        options.permits = (uint32_t)session->slot_count;
        options.limit = REDLOCK_LIMIT_MAX; /* whatever it is */
        options.slots = session->slots;
    }
    return redlock_adopt(session->manager, items[0].resource, items[0].token, &options, lease);
}

static void time_is_up(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)timer, (void)events;
}

void tool_session_rest(struct tool_session *session, int64_t ms, bool (*is_over)(const void *data), const void *data) {
    ev_timer timer;
    ev_now_update(session->loop);
    ev_timer_init(&timer, time_is_up, (double)ms / 1000, 0.);
    ev_timer_start(session->loop, &timer);
    while (ev_is_active(&timer) && (is_over == NULL || !is_over(data))) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    ev_timer_stop(session->loop, &timer);
}

bool tool_session_is_stopped(const void *session) {
    return ((const struct tool_session *)session)->stop_signal != 0;
}

redlock_node_info tool_session_node(const struct tool_session *session, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    (void)redlock_manager_node(session->manager, index, &info); /* the index is in range */
    return info;
}

static void closed(void *data) {
    struct tool_session *session = data;
    session->done = true;
}

void tool_session_close(struct tool_session *session) {
    if (session->manager != NULL) {
        tool_session_prepare(session);
        int code = redlock_manager_close(session->manager, closed, session);
        assert(code == REDLOCK_OK);
        while (!session->done) {
            ev_run(session->loop, EVRUN_ONCE);
        }
        session->manager = NULL;
        tool_session_ignore_stop(session);
        for (int i = 0; i < TOOL_COMMAND_SIGNALS; i++) {
            ev_signal_stop(session->loop, &session->command_watchers[i]);
        }
    }
    if (session->loop != NULL) {
        tool_reload_end(session);
        ev_loop_destroy(session->loop);
        session->loop = NULL;
    }
}
