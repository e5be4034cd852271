/* The work that a lease guards: the command of `run` and of `elect`. */
#include "work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "duration.h"
#include "nodes.h"
#include "report.h"

void tool_work_init(struct tool_work *work, struct tool_session *session) {
    redlock_statistics statistics = {.size = sizeof statistics};
    *work = (struct tool_work){.session = session};
    if (redlock_manager_statistics(session->manager, &statistics) == REDLOCK_OK) {
        work->failed_before = statistics.extends_failed;
    }
}

void tool_work_lose(struct tool_work *work, const char *reason) {
    const struct tool_options *options = work->session->options;
    char grace[32];
    char what[128] = "its command has ended";
    char message[2048];
    if (work->lost) {
        return;
    }
    work->lost = true;
    if (work->is_over) {
        return;
    }
    work->cut_short = work->child.state != TOOL_CHILD_OVER;
    tool_child_stop(&work->child, options->grace_ms);
    switch (work->child.state) {
    case TOOL_CHILD_ABSENT:
        return; /* tool_work_do() reports it */
    case TOOL_CHILD_STOPPING:
        snprintf(what, sizeof what, "its command (process group %ld) was sent SIGTERM, and SIGKILL follows in %s",
                 (long)work->child.pid, tool_duration_format(options->grace_ms, grace, sizeof grace));
        break;
    case TOOL_CHILD_KILLED:
        snprintf(what, sizeof what, "its command had not begun yet and was sent SIGKILL");
        break;
    case TOOL_CHILD_STARTING:
    case TOOL_CHILD_RUNNING:
    case TOOL_CHILD_OVER:
        break;
    }
    snprintf(message, sizeof message, "the lease on '%s' is lost: %s; %s", options->resource, reason, what);
    tool_report_error(options, redlock_error_name(REDLOCK_ERR_LOST), message, NULL);
}

static bool may_run(void *data) {
    const struct tool_work *work = data;
    return !work->lost && redlock_lease_validity_ms(work->lease) > 0;
}

/* Without a fencing token, removes the variable of a redlock that runs this one. */
static int set_fence(const struct tool_work *work) {
    char fence[32];
    if (!work->session->options->fence) {
        return unsetenv("REDLOCK_FENCE");
    }
    snprintf(fence, sizeof fence, "%" PRIu64, redlock_lease_fence(work->lease));
    return setenv("REDLOCK_FENCE", fence, 1);
}

/* Returns 0 or an errno. */
static int set_environment(const struct tool_work *work) {
    char validity[32];
    snprintf(validity, sizeof validity, "%" PRId64, redlock_lease_validity_ms(work->lease));
    if (setenv("REDLOCK_RESOURCE", work->session->options->resource, 1) != 0 ||
        setenv("REDLOCK_TOKEN", redlock_lease_token(work->lease), 1) != 0 ||
        setenv("REDLOCK_VALIDITY_MS", validity, 1) != 0 || set_fence(work) != 0) {
        return errno;
    }
    return 0;
}

/* Reports why there is no command; returns the exit status. */
static int report_no_command(const struct tool_work *work, bool in_exec, int error) {
    const struct tool_options *options = work->session->options;
    char message[2048];
    snprintf(message, sizeof message, "cannot run '%.1024s': %s; the lock is released", options->operands[0],
             strerror(error));
    tool_report_error(options, in_exec ? "EXEC" : "SYSTEM", message, NULL);
    if (!in_exec) {
        return TOOL_EXIT_SYSTEM;
    }
    return error == ENOENT ? TOOL_EXIT_NOT_FOUND : TOOL_EXIT_CANNOT_EXECUTE;
}

static void warn_of_renewal(struct tool_work *work) {
    struct tool_session *session = work->session;
    redlock_statistics statistics = {.size = sizeof statistics};
    int64_t validity_ms = redlock_lease_validity_ms(work->lease);
    if (work->warned || work->lost || validity_ms == 0 ||
        redlock_manager_statistics(session->manager, &statistics) != REDLOCK_OK ||
        statistics.extends_failed == work->failed_before) {
        return;
    }
    work->warned = true;
    char validity[32];
    char late[96];
    char summary[TOOL_NODES_SUMMARY_SIZE];
    size_t quorum = redlock_manager_quorum(session->manager);
    (void)snprintf(late, sizeof late, ", but too few of them confirmed it within %" PRId64 " ms (--node-timeout)",
                   session->node_timeout_ms);
    bool ready = tool_nodes_summary(session, TOOL_NODES_TO_EXTEND, summary, sizeof summary) >= quorum;
    tool_report_warn(session->options, "RENEWAL", "a renewal of '%s' failed; the lease is valid for %s more: %s%s",
                     session->options->resource, tool_duration_format(validity_ms, validity, sizeof validity), summary,
                     ready ? late : "");
}

/* Warns of trouble while the lease is still valid. */
static void warn(struct tool_work *work) {
    if (!work->lost) {
        tool_nodes_warn(work->session);
        warn_of_renewal(work);
    }
}

/* The exec, or a stop of this process meanwhile, may have taken longer than the lease lasts. */
static void look_after_exec(struct tool_work *work) {
    if (!work->begun && work->child.state == TOOL_CHILD_RUNNING) {
        work->begun = true;
        if (!may_run(work) && !work->lost) {
            tool_work_lose(work, "it ended before the command began");
        }
    }
}

/* Runs the command; returns the exit status. */
static int run_command(struct tool_work *work) {
    struct tool_session *session = work->session;
    int error = set_environment(work);
    if (error == 0) {
        error = tool_child_start(&work->child, session->options->operands);
    }
    if (error != 0) {
        return report_no_command(work, false, error);
    }
    while (work->child.state != TOOL_CHILD_OVER) {
        warn(work);
        ev_run(session->loop, EVRUN_ONCE);
        look_after_exec(work);
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

int tool_work_do(struct tool_work *work, redlock_lease *lease) {
    struct tool_session *session = work->session;
    work->lease = lease;
    tool_child_init(&work->child, session->loop, session->signals, may_run, work);
    tool_session_ignore_stop(session);
    if (may_run(work)) {
        return run_command(work);
    }
    char message[2048];
    snprintf(message, sizeof message, "the lease on '%s' ended before the command could be started: use a longer ttl",
             session->options->resource);
    tool_report_error(session->options, redlock_error_name(REDLOCK_ERR_LOST), message, NULL);
    work->lost = work->cut_short = true;
    return TOOL_EXIT_LOST;
}

int tool_work_released(const struct tool_work *work, int code, int status) {
    struct tool_session *session = work->session;
    if (work->lost) {
        return TOOL_EXIT_LOST; /* reported when it happened */
    }
    if (code == REDLOCK_ERR_LOST) {
        return tool_report_failure(session);
    }
    if (code != REDLOCK_OK) {
        tool_report_failure(session);
        tool_report_say(session->options,
                        "the exit status is the command's; the keys that are left end with their ttl");
    }
    return status;
}

void tool_work_end(struct tool_work *work) {
    pass_on_interrupt(work);
    tool_child_end(&work->child);
}

bool tool_work_is_unwanted(const struct tool_work *work) {
    return work->child.end_asked || work->session->stop_signal != 0 || work->session->raise_signal != 0;
}
