/* redlock run: acquires, runs a command, renews, releases; after a loss, stops the command. */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "child.h"
#include "duration.h"
#include "nodes.h"
#include "report.h"

struct run {
    struct tool_session *session;
    struct tool_child child;
    redlock_lease *lease;
    bool lost;
    bool begun;  /* the command has begun, and the lease was checked after that */
    bool warned; /* already warned of a failed renewal */
};

/* Stops the command, if there is one, and reports it. */
static void lose(struct run *run, const char *reason) {
    const struct tool_options *options = run->session->options;
    char grace[32];
    char what[128] = "its command has ended";
    char message[2048];
    run->lost = true;
    tool_child_stop(&run->child, options->grace_ms);
    switch (run->child.state) {
    case TOOL_CHILD_ABSENT:
        return; /* tool_run() reports it */
    case TOOL_CHILD_STOPPING:
        snprintf(what, sizeof what, "its command (process group %ld) was sent SIGTERM, and SIGKILL follows in %s",
                 (long)run->child.pid, tool_duration_format(options->grace_ms, grace, sizeof grace));
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

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    (void)lease;
    struct run *run = data;
    if (!run->lost) {
        lose(run, reason);
    }
}

static bool may_run(void *data) {
    const struct run *run = data;
    return !run->lost && redlock_lease_validity_ms(run->lease) > 0;
}

/* Without a fencing token, removes the variable of a redlock that runs this one. */
static int set_fence(const struct run *run) {
    char fence[32];
    if (!run->session->options->fence) {
        return unsetenv("REDLOCK_FENCE");
    }
    snprintf(fence, sizeof fence, "%" PRIu64, redlock_lease_fence(run->lease));
    return setenv("REDLOCK_FENCE", fence, 1);
}

/* Returns 0 or an errno. */
static int set_environment(const struct run *run) {
    char validity[32];
    snprintf(validity, sizeof validity, "%" PRId64, redlock_lease_validity_ms(run->lease));
    if (setenv("REDLOCK_RESOURCE", run->session->options->resource, 1) != 0 ||
        setenv("REDLOCK_TOKEN", redlock_lease_token(run->lease), 1) != 0 ||
        setenv("REDLOCK_VALIDITY_MS", validity, 1) != 0 || set_fence(run) != 0) {
        return errno;
    }
    return 0;
}

/* Reports why there is no command; returns the exit status. */
static int report_no_command(const struct run *run, bool in_exec, int error) {
    const struct tool_options *options = run->session->options;
    char message[2048];
    snprintf(message, sizeof message, "cannot run '%.1024s': %s; the lock is released", options->operands[0],
             strerror(error));
    tool_report_error(options, in_exec ? "EXEC" : "SYSTEM", message, NULL);
    if (!in_exec) {
        return TOOL_EXIT_SYSTEM;
    }
    return error == ENOENT ? TOOL_EXIT_NOT_FOUND : TOOL_EXIT_CANNOT_EXECUTE;
}

static void warn_of_renewal(struct run *run) {
    struct tool_session *session = run->session;
    redlock_statistics statistics = {.size = sizeof statistics};
    int64_t validity_ms = redlock_lease_validity_ms(run->lease);
    if (run->warned || run->lost || validity_ms == 0 ||
        redlock_manager_statistics(session->manager, &statistics) != REDLOCK_OK || statistics.extends_failed == 0) {
        return;
    }
    run->warned = true;
    char validity[32];
    char summary[TOOL_NODES_SUMMARY_SIZE];
    size_t quorum = redlock_manager_quorum(session->manager);
    bool ready = tool_nodes_summary(session, TOOL_NODES_TO_EXTEND, summary, sizeof summary) >= quorum;
    tool_report_warn(session->options, "RENEWAL", "a renewal of '%s' failed; the lease is valid for %s more: %s%s",
                     session->options->resource, tool_duration_format(validity_ms, validity, sizeof validity), summary,
                     ready ? ", but too few of them answered in time" : "");
}

/* Warns of trouble while the lease is still valid. */
static void warn(struct run *run) {
    if (!run->lost) {
        tool_nodes_warn(run->session);
        warn_of_renewal(run);
    }
}

/* The exec, or a stop of this process meanwhile, may have taken longer than the lease lasts. */
static void look_after_exec(struct run *run) {
    if (!run->begun && run->child.state == TOOL_CHILD_RUNNING) {
        run->begun = true;
        if (!may_run(run) && !run->lost) {
            lose(run, "it ended before the command began");
        }
    }
}

/* Runs the command; returns the exit status. */
static int run_command(struct run *run) {
    struct tool_session *session = run->session;
    int error = set_environment(run);
    if (error == 0) {
        error = tool_child_start(&run->child, session->options->operands);
    }
    if (error != 0) {
        return report_no_command(run, false, error);
    }
    while (run->child.state != TOOL_CHILD_OVER) {
        warn(run);
        ev_run(session->loop, EVRUN_ONCE);
        look_after_exec(run);
    }
    if (run->child.exec_error != 0) {
        return report_no_command(run, true, run->child.exec_error);
    }
    return tool_child_exit_status(&run->child);
}

/* Releases the lock; returns the tool's exit status. */
static int release(struct run *run, int status) {
    struct tool_session *session = run->session;
    int code = tool_session_finish(session, redlock_release(run->lease, tool_session_completed, session));
    if (run->lost) {
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

/* The terminal sent the signal to the command's group only. Passes it on to ours, to end, for
 * example, a script that runs us. */
static void pass_on_interrupt(struct run *run) {
    const struct tool_child *child = &run->child;
    if (child->reaped && child->had_terminal && WIFSIGNALED(child->wait_status)) {
        int number = WTERMSIG(child->wait_status);
        if (number == SIGINT || number == SIGQUIT) {
            run->session->raise_signal = number;
        }
    }
}

int tool_run(struct tool_session *session) {
    struct run run = {.session = session};
    int status = 0;
    if (!tool_session_acquire(session, true, on_lost, &run, &status)) {
        return status;
    }
    run.lease = session->lease;
    tool_child_init(&run.child, session->loop, session->signals, may_run, &run);
    tool_session_ignore_stop(session);
    if (!may_run(&run)) {
        char message[2048];
        snprintf(message, sizeof message,
                 "the lease on '%s' ended before the command could be started: use a longer ttl",
                 session->options->resource);
        tool_report_error(session->options, redlock_error_name(REDLOCK_ERR_LOST), message, NULL);
        run.lost = true;
    } else {
        status = run_command(&run);
    }
    status = release(&run, status);
    pass_on_interrupt(&run);
    tool_child_end(&run.child);
    return status;
}
