/* The work that a lease guards: the command of `run` and of `elect`. */
#include "work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "nodes.h"
#include "report.h"
#include "values/clock.h"
#include "values/values.h"

#define GRACE_MS      INT64_C(5000) /* unless --grace says */
#define MARGIN_MS_MAX INT64_C(500)
#define NS_PER_MS     INT64_C(1000000)
#define PAUSE_MS      INT64_C(20) /* between two looks whether a release is confirmed */
/* The validity is rounded down to ms, so the deadline that it gives differs by less than this. */
#define SAME_NS (2 * NS_PER_MS)

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t margin_ms(const struct tool_options *options) {
    return least(options->lock.ttl_ms / 10, MARGIN_MS_MAX);
}

static int64_t grace_ms(const struct tool_options *options) {
    return least(options->grace_ms == TOOL_NOT_GIVEN ? GRACE_MS : options->grace_ms, options->lock.ttl_ms / 5);
}

/* How long before the deadline the command is stopped. */
static int64_t stop_ms(const struct tool_options *options) {
    return margin_ms(options) + grace_ms(options);
}

void tool_work_check_grace(const struct tool_session *session) {
    const struct tool_options *options = session->options;
    if (options->grace_ms <= grace_ms(options)) {
        return;
    }
    tool_report_warn(options, "GRACE",
                     "--grace %s does not fit into the ttl of %s: SIGKILL comes %s after SIGTERM, "
                     "a fifth of the ttl",
                     TOOL_DURATION_EXACT(options->grace_ms), TOOL_DURATION_EXACT(options->lock.ttl_ms),
                     TOOL_DURATION_EXACT(grace_ms(options)));
}

/* Our clock is read first: the deadline is never later than the one that the library keeps. Moves
 * the command's end with it. Returns the time left. */
static int64_t look_at_lease(struct tool_work *work) {
    const int64_t now_ns = tool_now_ns();
    const int64_t left_ms = redlock_lease_validity_ms(work->lease);
    const int64_t deadline_ns = now_ns + left_ms * NS_PER_MS;
    if (left_ms > 0 && deadline_ns > work->deadline_ns + SAME_NS) {
        work->deadline_ns = deadline_ns;
    }
    return left_ms;
}

static int64_t kill_ns(const struct tool_work *work) {
    return work->deadline_ns - margin_ms(work->session->options) * NS_PER_MS;
}

/* The sentry may have been first, while this process was stopped. */
static bool is_killed_in_time(const struct tool_work *work) {
    const struct tool_child *child = &work->child;
    return child->reaped && WIFSIGNALED(child->wait_status) && WTERMSIG(child->wait_status) == SIGKILL &&
           tool_now_ns() >= kill_ns(work);
}

/* The command must end. `why`: what became of the lease. Only once. */
static void end_command(struct tool_work *work, const char *why) {
    const struct tool_options *options = work->session->options;
    const int64_t now_ns = tool_now_ns();
    const int64_t end_ns = least(kill_ns(work), now_ns + grace_ms(options) * NS_PER_MS);
    char what[128] = "its command has ended";
    work->lost = true;
    const enum tool_child_state before = tool_child_stop(&work->child, end_ns);
    work->cut_short = before != TOOL_CHILD_OVER || is_killed_in_time(work);
    switch (work->child.state) {
    case TOOL_CHILD_ABSENT:
        return; /* tool_work_do() reports it */
    case TOOL_CHILD_STOPPING:
        snprintf(what, sizeof what, "its command (process group %ld) was sent SIGTERM, and SIGKILL follows in %s",
                 (long)work->child.pid, TOOL_DURATION((end_ns - now_ns) / NS_PER_MS));
        break;
    case TOOL_CHILD_KILLED:
        snprintf(what, sizeof what, "its command %swas sent SIGKILL",
                 before == TOOL_CHILD_STARTING ? "had not begun yet and " : "");
        break;
    case TOOL_CHILD_STARTING:
    case TOOL_CHILD_RUNNING:
        break;
    case TOOL_CHILD_OVER:
        if (work->cut_short) {
            snprintf(what, sizeof what, "its command was sent SIGKILL");
        }
        break;
    }
    if (tool_child_is_out_of_reach(&work->child)) {
        snprintf(what, sizeof what,
                 "its command (process %ld) runs on: it is another user's, whom redlock may not send signals",
                 (long)work->child.pid);
    }
    tool_report_error(options, redlock_error_name(REDLOCK_ERR_LOST), "the lease on '%s' %s; %s", options->name, why,
                      what);
}

void tool_work_lose(struct tool_work *work, const char *reason) {
    if (work->lost || work->is_over) {
        work->lost = true;
        return;
    }
    snprintf(work->loss, sizeof work->loss, "%s", reason);
    end_command(work, TOOL_TEXT(1280, "is lost: %s", reason));
}

static bool may_run(void *data) {
    const struct tool_work *work = data;
    return !work->lost && redlock_lease_validity_ms(work->lease) > stop_ms(work->session->options);
}

/* What became of the lease, for end_command(). Nothing is left of one that was over first. */
static void say_why(const struct tool_work *work, int64_t left_ms, char *why, size_t size) {
    const struct tool_options *options = work->session->options;
    const bool capped =
        options->lock.auto_extend_max_ms > 0 && tool_session_held_ms(work->session) >= options->lock.auto_extend_max_ms;
    const char *votes = capped ? "" : work->session->renewal_failed;
    char cap[64] = "", end[64] = " in time";
    if (left_ms > 0) {
        snprintf(end, sizeof end, " and ends in %s", TOOL_DURATION(left_ms));
    }
    if (left_ms > 0 && capped) {
        snprintf(cap, sizeof cap, " after --max-time %s", TOOL_DURATION_EXACT(options->lock.auto_extend_max_ms));
    }
    snprintf(why, size, "was not renewed%s%s%s%s", cap, end, votes[0] != '\0' ? ": " : "", votes);
}

/* Stops the command if its lease has not been renewed in time; else looks again in time. */
static void guard(struct tool_work *work) {
    struct ev_loop *loop = work->session->loop;
    const int64_t stop = stop_ms(work->session->options);
    const int64_t known_ns = work->deadline_ns;
    const bool killed = is_killed_in_time(work);
    char why[1280];
    if (work->lost || (work->child.state == TOOL_CHILD_OVER && !killed)) {
        ev_timer_stop(loop, &work->stop_timer);
        return;
    }
    const int64_t left_ms = look_at_lease(work);
    if (left_ms <= stop || killed) {
        say_why(work, killed ? 0 : left_ms, why, sizeof why);
        end_command(work, why);
        return;
    }
    if (work->deadline_ns != known_ns) {
        tool_child_renew(&work->child, kill_ns(work));
    }
    if (work->deadline_ns != known_ns || !ev_is_active(&work->stop_timer)) {
        ev_now_update(loop);
        ev_timer_stop(loop, &work->stop_timer);
        ev_timer_set(&work->stop_timer, (double)(left_ms - stop) / 1000., 0.);
        ev_timer_start(loop, &work->stop_timer);
    }
}

static void stop_time(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    guard(timer->data);
}

void tool_work_init(struct tool_work *work, struct tool_session *session) {
    *work = (struct tool_work){.session = session};
    ev_timer_init(&work->stop_timer, stop_time, 0., 0.);
    ev_set_priority(&work->stop_timer, EV_MAXPRI);
    work->stop_timer.data = work;
}

/* What each resource has of its own, with a newline between. Without a fencing token, removes the
 * variable of a redlock that runs this one. */
static int set_items(const struct tool_work *work) {
    const struct tool_options *options = work->session->options;
    char resources[REDLOCK_ITEMS_MAX * (REDLOCK_RESOURCE_SIZE_MAX + 1)] = "";
    char tokens[REDLOCK_ITEMS_MAX * (REDLOCK_TOKEN_SIZE_MAX + 1)] = "";
    char fences[REDLOCK_ITEMS_MAX * 21] = "";
    for (size_t i = 0; i < options->item_count; i++) {
        const char *between = i > 0 ? "\n" : "";
        tool_append(resources, sizeof resources, "%s%s", between, options->items[i].resource);
        tool_append(tokens, sizeof tokens, "%s%s", between, redlock_lease_item_token(work->lease, i));
        tool_append(fences, sizeof fences, "%s%" PRIu64, between, redlock_lease_item_fence(work->lease, i));
    }
    char slots[TOOL_SLOTS_SIZE];
    tool_report_slots(work->session, slots, sizeof slots);
    if ((slots[0] != '\0' ? setenv("REDLOCK_SLOTS", slots, 1) : unsetenv("REDLOCK_SLOTS")) != 0) {
        return -1;
    }
    return setenv("REDLOCK_RESOURCE", resources, 1) != 0 || setenv("REDLOCK_TOKEN", tokens, 1) != 0 ||
                   (options->lock.fencing ? setenv("REDLOCK_FENCE", fences, 1) : unsetenv("REDLOCK_FENCE")) != 0
               ? -1
               : 0;
}

/* Returns 0 or an errno. */
static int set_environment(const struct tool_work *work) {
    const char *validity = TOOL_TEXT(32, "%" PRId64, redlock_lease_validity_ms(work->lease));
    return setenv("REDLOCK_VALIDITY_MS", validity, 1) != 0 || set_items(work) != 0 ? errno : 0;
}

/* Reports why there is no command; returns the exit status. */
static int report_no_command(const struct tool_work *work, bool in_exec, int error) {
    const struct tool_options *options = work->session->options;
    tool_report_error(options, in_exec ? "EXEC" : "SYSTEM", "cannot run '%.1024s': %s; the lock is released",
                      options->operands[0], strerror(error));
    if (!in_exec) {
        return TOOL_EXIT_SYSTEM;
    }
    return error == ENOENT ? TOOL_EXIT_NOT_FOUND : TOOL_EXIT_CANNOT_EXECUTE;
}

static void warn_of_renewal(struct tool_work *work) {
    const struct tool_session *session = work->session;
    int64_t validity_ms = redlock_lease_validity_ms(work->lease);
    if (work->warned || work->lost || validity_ms == 0 || session->renewal_failed[0] == '\0') {
        return;
    }
    work->warned = true;
    tool_report_warn(session->options, "RENEWAL", "a renewal of '%s' failed; the lease is valid for %s more: %s",
                     session->options->name, TOOL_DURATION(validity_ms), session->renewal_failed);
}

/* No signal of ours ends what runs as another user. */
static void warn_of_reach(struct tool_work *work) {
    if (work->warned_reach || !tool_child_is_out_of_reach(&work->child)) {
        return;
    }
    work->warned_reach = true;
    tool_report_warn(work->session->options, "REACH",
                     work->lost ? "processes of the command's group (%ld) run on as another user, whom redlock may not "
                                  "send signals: start redlock itself as that user, or as root"
                                : "the command (process %ld) runs as another user, whom redlock may not send signals: "
                                  "it may outlive its lease; start redlock itself as that user, or as root",
                     (long)work->child.pid);
}

/* Warns of trouble while the lease is still valid. */
static void warn(struct tool_work *work) {
    if (!work->lost) {
        tool_nodes_warn(work->session, true);
        warn_of_renewal(work);
        warn_of_reach(work);
    }
}

/* Runs the command; returns the exit status. */
static int run_command(struct tool_work *work) {
    struct tool_session *session = work->session;
    int error = set_environment(work);
    if (error == 0) {
        error = tool_child_start(&work->child, session->options->operands, kill_ns(work));
    }
    if (error != 0) {
        return report_no_command(work, false, error);
    }
    guard(work);
    while (work->child.state != TOOL_CHILD_OVER) {
        warn(work);
        ev_run(session->loop, EVRUN_ONCE);
        guard(work);
    }
    ev_timer_stop(session->loop, &work->stop_timer);
    if (work->lost) {
        warn_of_reach(work);
    }
    if (work->child.exec_error != 0) {
        return report_no_command(work, true, work->child.exec_error);
    }
    return tool_child_exit_status(&work->child);
}

/* The terminal sent the signal to the command's group only. Passes it on to ours, to end, for
 * example, a script that runs us. */
static void pass_on_interrupt(struct tool_work *work) {
    const struct tool_child *child = &work->child;
    if (child->reaped && child->had_terminal && WIFSIGNALED(child->wait_status)) {
        int number = WTERMSIG(child->wait_status);
        if (number == SIGINT || number == SIGQUIT) {
            work->session->raise_signal = number;
        }
    }
}

/* A lease from a queue, or after a slow round, may have little time left. It is renewed at once. */
static void wait_for_time(struct tool_work *work) {
    struct tool_session *session = work->session;
    while (!work->lost && !may_run(work) && session->stop_signal == 0) {
        ev_run(session->loop, EVRUN_ONCE);
    }
}

int tool_work_do(struct tool_work *work, redlock_lease *lease) {
    struct tool_session *session = work->session;
    work->lease = lease;
    for (size_t i = 0; i < session->options->item_count; i++) {
        snprintf(work->tokens[i], sizeof work->tokens[i], "%s", redlock_lease_item_token(lease, i));
    }
    wait_for_time(work);
    tool_child_init(&work->child, session->loop, session->signals, may_run, work);
    tool_session_ignore_stop(session);
    if (session->stop_signal != 0) {
        return TOOL_EXIT_SIGNAL_BASE + session->stop_signal;
    }
    if (may_run(work)) {
        (void)look_at_lease(work);
        const int status = run_command(work);
        work->rest_ms = work->lost ? 0 : redlock_lease_validity_ms(lease);
        return status;
    }
    tool_report_error(session->options, redlock_error_name(REDLOCK_ERR_LOST),
                      "the lease on '%s' is lost: %s; its command had not begun yet", session->options->name,
                      work->loss);
    work->lost = work->cut_short = true;
    return TOOL_EXIT_LOST;
}

/*
 * A release found no quorum. Asks again until a quorum of nodes says that the lock is not held
 * under these tokens any more, for rest_ms (after which the lock has ended anyway) and for the
 * connect timeout at most. Connections that died without a sound have been replaced by then.
 * Returns whether it is confirmed. The library goes on with the first release, too. So LOST is a
 * yes: no key is left at a quorum. But that a node has no key any more says nothing new: the
 * session keeps the result of the first release, which tells which nodes have confirmed it.
 */
static bool confirm_release(struct tool_work *work) {
    struct tool_session *session = work->session;
    const struct tool_options *options = session->options;
    const int64_t over_ms = tool_session_age_ms(session) + least(work->rest_ms, options->manager.connect_timeout_ms);
    redlock_item items[REDLOCK_ITEMS_MAX];
    redlock_result *first = session->result;
    redlock_lease *lease;
    int code = REDLOCK_ERR_NO_QUORUM;
    session->result = NULL;
    for (size_t i = 0; i < options->item_count; i++) {
        items[i] = options->items[i];
        items[i].token = work->tokens[i];
    }
    while (code == REDLOCK_ERR_NO_QUORUM && tool_session_age_ms(session) < over_ms) {
        tool_session_rest(session, PAUSE_MS, NULL, NULL);
        code = tool_session_adopt(session, items, options->item_count, &lease);
        code = code == REDLOCK_OK ? tool_session_release(session, lease) : code;
    }
    redlock_result_free(session->result);
    session->result = first;
    session->code = REDLOCK_ERR_NO_QUORUM;
    return code == REDLOCK_OK || code == REDLOCK_ERR_LOST;
}

int tool_work_released(struct tool_work *work, int code, int status) {
    struct tool_session *session = work->session;
    if (work->lost) {
        return TOOL_EXIT_LOST; /* reported when it happened */
    }
    if (code == REDLOCK_ERR_LOST) {
        return tool_report_failure(session, NULL);
    }
    if (code == REDLOCK_OK || (code == REDLOCK_ERR_NO_QUORUM && confirm_release(work))) {
        return status;
    }
    (void)tool_report_failure(
        session, status != 0 ? "the exit status is the command's; the keys that are left end with their ttl"
                             : "the command succeeded; the keys that are left end with their ttl");
    return status != 0 ? status : TOOL_EXIT_UNCONFIRMED;
}

void tool_work_end(struct tool_work *work) {
    pass_on_interrupt(work);
    tool_child_end(&work->child);
}

bool tool_work_is_unwanted(const struct tool_work *work) {
    return work->child.end_asked || work->session->stop_signal != 0 || work->session->raise_signal != 0;
}
