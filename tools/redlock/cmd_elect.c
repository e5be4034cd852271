/* redlock elect: campaigns, and runs a command while it leads; or prints who leads. */
#include "commands.h"

#include <stdio.h>

#include <redlock/election.h>

#include "nodes.h"
#include "report.h"
#include "text.h"
#include "work.h"

struct elect {
    struct tool_session *session;
    redlock_election *election;
    struct tool_work work;
    redlock_lease *lease; /* while it leads */
    bool out;             /* it stays out until it campaigns again */
    bool ended;
};

/* A loss that is told before the command could begin is not told to the user: nothing was done. The
 * election stays out until the command has ended. */
static void lose(struct elect *elect, const char *reason) {
    elect->lease = NULL;
    tool_work_lose(&elect->work, reason);
    (void)redlock_election_resign(elect->election);
}

static void warn(const struct tool_session *session, int code) {
    char summary[TOOL_NODES_SUMMARY_SIZE];
    tool_nodes_summary(session, summary, sizeof summary);
    tool_report_warn(session->options, redlock_error_name(code), "'%s' cannot be won now: %s: %s; still trying",
                     session->options->resource, redlock_strerror(code), summary);
}

static void on_event(const redlock_election_event *event, void *data) {
    struct elect *elect = data;
    switch (event->kind) {
    case REDLOCK_ELECTION_LEADING:
        tool_work_init(&elect->work, elect->session);
        elect->lease = event->lease;
        break;
    case REDLOCK_ELECTION_LOST:
        lose(elect, event->reason);
        break;
    case REDLOCK_ELECTION_RESIGNED:
        elect->out = true;
        elect->session->code = event->code;
        redlock_result_free(elect->session->result);
        elect->session->result = event->result != NULL ? redlock_result_copy(event->result) : NULL;
        break;
    case REDLOCK_ELECTION_TROUBLE:
        if (event->code != REDLOCK_OK) {
            warn(elect->session, event->code);
        }
        break;
    case REDLOCK_ELECTION_ENDED:
        elect->ended = true;
        break;
    case REDLOCK_ELECTION_LEADER:
    case REDLOCK_ELECTION_EXPIRING:
    case REDLOCK_ELECTION_NOTHING:
        break;
    }
}

static void run_until(struct elect *elect, const bool *condition) {
    while (!*condition) {
        ev_run(elect->session->loop, EVRUN_ONCE);
    }
}

/* Waits until it leads. False if a signal comes first. */
static bool campaign(struct elect *elect) {
    struct tool_session *session = elect->session;
    while (elect->lease == NULL && session->stop_signal == 0) {
        if (elect->out) {
            elect->out = redlock_election_campaign(elect->election) != REDLOCK_OK;
        }
        tool_nodes_warn(session, true);
        ev_run(session->loop, EVRUN_ONCE);
    }
    return session->stop_signal == 0;
}

/* Runs the command while it leads. True if it must campaign again; else sets the exit status. */
static bool lead(struct elect *elect, int *status) {
    struct tool_session *session = elect->session;
    struct tool_work *work = &elect->work;
    tool_session_prepare(session);
    *status = tool_work_do(work, elect->lease);
    elect->lease = NULL;
    int code = redlock_election_resign(elect->election); /* after a loss it is out, or will be */
    run_until(elect, &elect->out);
    if (code == REDLOCK_OK) {
        code = session->code;
    }
    *status = tool_work_released(work, code, *status);
    bool again = work->cut_short && !tool_work_is_unwanted(work);
    if (again) {
        tool_session_watch_stop(session);
    }
    tool_work_end(work);
    return again && session->raise_signal == 0;
}

static int elect_and_run(struct tool_session *session) {
    const struct tool_options *options = session->options;
    struct elect elect = {.session = session};
    redlock_election_options election;
    int status = 0;
    tool_work_check_grace(session);
    redlock_election_options_default(&election);
    election.ttl_ms = options->lock.ttl_ms;
    election.fencing = options->lock.fencing;
    election.heal = options->lock.heal;
    election.lock_delay_ms = options->lock.lock_delay_ms;
    session->code = redlock_elect(session->manager, options->resource, &election, on_event, &elect, &elect.election);
    if (session->code != REDLOCK_OK) {
        return tool_report_failure(session, NULL);
    }
    bool again;
    do {
        again = campaign(&elect) && lead(&elect, &status);
    } while (again);
    if (redlock_election_end(elect.election) == REDLOCK_OK) {
        run_until(&elect, &elect.ended);
    }
    return session->stop_signal != 0 ? tool_session_stopped(session) : status;
}

/* One line, or one object, for each change. */
static void print_leader(const redlock_leader *leader, void *data) {
    struct tool_session *session = data;
    const char *name = leader->holder[0] != '\0' ? leader->holder : leader->token;
    if (session->options->json) {
        struct tool_json json = tool_json_begin(stdout);
        tool_json_string(&json, "resource", session->options->resource);
        if (leader->token[0] == '\0') {
            tool_json_null(&json, "leader");
        } else {
            tool_json_open(&json, "leader", '{');
            tool_json_string(&json, "token", leader->token);
            tool_json_string(&json, "holder", leader->holder);
            tool_json_close(&json, '}');
        }
        tool_json_close(&json, '}');
    } else {
        tool_print_safe(stdout, session->options->resource);
        fputs(name[0] == '\0' ? ": nobody leads" : ": the leader is ", stdout);
        tool_print_safe(stdout, name);
    }
    putchar('\n');
    session->code = tool_report_flush(session->options);
}

static int observe(struct tool_session *session) {
    redlock_observer *observer = NULL;
    int code = redlock_observe(session->manager, session->options->resource, print_leader, session, &observer);
    if (code != REDLOCK_OK) {
        session->code = code;
        return tool_report_failure(session, NULL);
    }
    session->code = 0;
    while (session->stop_signal == 0 && session->code == 0) {
        tool_nodes_warn(session, true);
        ev_run(session->loop, EVRUN_ONCE);
    }
    redlock_observer_end(observer);
    return session->code != 0 ? session->code : TOOL_EXIT_SIGNAL_BASE + session->stop_signal;
}

int tool_elect(struct tool_session *session) {
    bool observes = session->options->observe;
    int status = tool_session_begin(session, observes); /* a candidate is told why it cannot win */
    if (status != 0) {
        return status;
    }
    if (session->stop_signal != 0) {
        status = tool_session_stopped(session);
    } else {
        status = observes ? observe(session) : elect_and_run(session);
    }
    tool_session_stop_explaining(session);
    return status;
}
