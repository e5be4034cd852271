/* redlock run: acquires, runs a command, renews, releases or keeps; after a loss, stops the
 * command. */
#include "commands.h"

#include "report.h"
#include "work.h"

/*
 * --at-least: the lock stays after a success, until so long after its start. Nobody is there to
 * hold the lock once the tool has ended, so its keys must live by their ttl:
 *
 * | the command                    | the lock                                                 |
 * | ------------------------------ | -------------------------------------------------------- |
 * | fails, cannot be run, a signal | is released at once                                      |
 * | succeeds after that time       | is released                                              |
 * | succeeds before                | its ttl becomes the rest of the time; nobody releases it |
 * | is stopped by a loss           | was lost: nothing to keep                                |
 *
 * Times are read from CLOCK_BOOTTIME, from the moment at which the lock was taken. An extension
 * that finds no quorum is tried again for as long as the lease is valid.
 */

#define BUSY_RETRY_MS      INT64_C(5)
#define NO_QUORUM_RETRY_MS INT64_C(200)

static int64_t rest_ms(const struct tool_session *session) {
    return session->options->at_least_ms - tool_session_held_ms(session);
}

/* Whether the lock must stay after a command with this exit status. */
static bool must_stay(const struct tool_session *session, const struct tool_work *work, int status) {
    return session->options->at_least_ms != 0 && status == 0 && !work->lost && rest_ms(session) > 0;
}

static bool is_lost(const void *work) {
    return ((const struct tool_work *)work)->lost;
}

/* Returns the code of the last extension. Its result is the session's. Once an extension has found
 * no quorum, the deadline of the lease changes nothing: the command had ended before. */
static int extend(struct tool_session *session, struct tool_work *work, redlock_lease *lease) {
    for (;;) {
        /* The lock delay is added to each ttl. Where it covers the rest, or the lease does, the
         * keys live long enough. */
        const int64_t ttl_ms = rest_ms(session) - session->options->lock.lock_delay_ms;
        if (work->lost) {
            return work->is_over ? REDLOCK_ERR_NO_QUORUM : REDLOCK_ERR_LOST;
        }
        if (ttl_ms <= redlock_lease_validity_ms(lease)) {
            return REDLOCK_OK;
        }
        const int code = tool_session_finish(session, redlock_extend(lease, ttl_ms, tool_session_completed, session));
        work->is_over = work->is_over || code == REDLOCK_ERR_NO_QUORUM;
        if (code != REDLOCK_ERR_BUSY && code != REDLOCK_ERR_NO_QUORUM) {
            return code == REDLOCK_ERR_LOST && work->is_over ? REDLOCK_ERR_NO_QUORUM : code;
        }
        if (tool_work_is_unwanted(work) || redlock_lease_validity_ms(lease) == 0) {
            return REDLOCK_ERR_NO_QUORUM;
        }
        tool_session_rest(session, code == REDLOCK_ERR_BUSY ? BUSY_RETRY_MS : NO_QUORUM_RETRY_MS, is_lost, work);
    }
}

/* The ttl may be longer than the rest. */
static void say_kept(const struct tool_session *session, const redlock_lease *lease) {
    const struct tool_options *options = session->options;
    const int64_t at_least_ms = rest_ms(session), valid_ms = redlock_lease_validity_ms(lease);
    const int64_t left_ms = at_least_ms > valid_ms ? at_least_ms : valid_ms;
    if (!options->json) {
        return; /* as after any success */
    }
    struct tool_json json = tool_json_begin(tool_words_line(options->words));
    tool_report_name(&json, "kept", options);
    tool_json_number(&json, "remaining_ms", left_ms);
    tool_report_send(&json, options, TOOL_WORDS_INFO);
}

/* Lets it stay, and ends the lease. Returns the exit status, if that of the command is `status`. */
static int keep(struct tool_session *session, struct tool_work *work, redlock_lease *lease, int status) {
    const int code = extend(session, work, lease);
    if (code == REDLOCK_OK) {
        say_kept(session, lease);
        redlock_lease_forget(lease);
        return status;
    }
    if (code == REDLOCK_ERR_LOST) {
        if (!work->lost) {
            (void)tool_report_failure(session, NULL);
            work->lost = true;
        }
        tool_session_release(session, lease);
        return TOOL_EXIT_LOST;
    }
    (void)tool_report_failure(
        session, "the command succeeded, but too few nodes confirmed that they keep its lock: another machine may "
                 "run the command again before the time is over; the exit status is the command's");
    redlock_lease_forget(lease);
    return status;
}

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    (void)lease;
    tool_work_lose(data, reason);
}

int tool_run(struct tool_session *session) {
    struct tool_work work;
    int status = 0;
    tool_work_init(&work, session);
    tool_work_check_grace(session);
    if (!tool_session_acquire(session, true, on_lost, &work, &status)) {
        return status;
    }
    redlock_lease *lease = session->lease;
    tool_report_acquired(session);
    status = tool_work_do(&work, lease);
    if (session->stop_signal != 0) {
        status = tool_session_stopped(session);
    } else if (must_stay(session, &work, status)) {
        status = keep(session, &work, lease, status);
    } else {
        int code = tool_session_release(session, lease);
        status = tool_work_released(&work, code, status);
    }
    tool_work_end(&work);
    return status;
}
