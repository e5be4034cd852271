/* redlock run: acquires, runs a command, renews, releases or keeps; after a loss, stops the
 * command. */
#include "commands.h"

#include "keep.h"
#include "report.h"
#include "work.h"

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
    } else if (tool_keep_is_due(session, &work, status)) {
        status = tool_keep(session, &work, lease, status);
    } else {
        int code = tool_session_finish(session, redlock_release(lease, tool_session_completed, session));
        status = tool_work_released(&work, code, status);
    }
    tool_work_end(&work);
    return status;
}
