/* redlock extend, downgrade and release: for locks of which only the tokens are known. */
#include "commands.h"

#include "nodes.h"
#include "report.h"
#include "text.h"
#include "values/values.h"

/* Returns 0 with *lease set, or an exit status after printing why. */
static int adopt(struct tool_session *session, redlock_lease **lease) {
    tool_session_connect(session, false);
    if (session->stop_signal != 0) {
        return tool_session_stopped(session);
    }
    int code = tool_session_adopt(session, session->options->items, session->options->item_count, lease);
    if (code != REDLOCK_OK) {
        return tool_report_code(session, code);
    }
    return 0;
}

static void print_success(const struct tool_session *session, const char *text, int64_t validity_ms) {
    const struct tool_options *options = session->options;
    if (options->json) {
        struct tool_json json = tool_json_begin(stdout);
        tool_report_items(&json, options, NULL);
        if (validity_ms >= 0) {
            tool_json_number(&json, "validity_ms", validity_ms);
        }
        tool_report_votes(&json, session->result, false);
        tool_json_end(&json);
    } else if (!options->quiet) {
        for (size_t i = 0; i < options->item_count; i++) {
            tool_print_safe(stdout, options->items[i].resource);
            printf(": %s%s\n", text, validity_ms < 0 ? "" : TOOL_DURATION(validity_ms));
        }
    }
}

/* After an extension, with the session's result. Ends the lease; returns the exit status. */
static int finish(struct tool_session *session, redlock_lease *lease, const char *text) {
    const int code = session->code;
    if (code == REDLOCK_OK) {
        print_success(session, text, redlock_lease_validity_ms(lease));
        redlock_lease_forget(lease);
        tool_nodes_warn(session, true);
        return tool_report_flush(session->options);
    }
    const int status = tool_report_failure(session, NULL);
    tool_nodes_warn(session, false);
    if (code == REDLOCK_ERR_LOST) {
        /* Keys on a minority would keep others out for the new ttl. */
        tool_session_release(session, lease);
    } else {
        redlock_lease_forget(lease);
    }
    return status;
}

int tool_extend(struct tool_session *session) {
    redlock_lease *lease;
    int status = adopt(session, &lease);
    if (status != 0) {
        return status;
    }
    int64_t ttl_ms = session->options->lock.ttl_ms;
    (void)tool_session_finish(session, redlock_extend(lease, ttl_ms, tool_session_completed, session));
    return finish(session, lease, "extended; valid for at least ");
}

int tool_downgrade(struct tool_session *session) {
    redlock_lease *lease;
    int status = adopt(session, &lease);
    if (status != 0) {
        return status;
    }
    (void)tool_session_finish(session, redlock_downgrade(lease, tool_session_completed, session));
    return finish(session, lease, "others may read it, too; valid for at least ");
}

int tool_release(struct tool_session *session) {
    redlock_lease *lease;
    int status = adopt(session, &lease);
    if (status != 0) {
        return status;
    }
    int code = tool_session_release(session, lease);
    if (code != REDLOCK_OK) {
        status = tool_report_failure(session, NULL);
        tool_nodes_warn(session, false);
        return status;
    }
    tool_nodes_warn(session, true);
    print_success(session, "released", -1);
    return tool_report_flush(session->options);
}
