/* redlock acquire: takes the lock, prints its tokens, leaves it to its ttl. */
#include "commands.h"

#include <inttypes.h>

#include "holders.h"
#include "nodes.h"
#include "report.h"
#include "values/values.h"

static void print_json(const struct tool_session *session) {
    struct tool_json json = tool_json_begin(stdout);
    tool_json_string(&json, "resource", session->options->resource);
    tool_json_string(&json, "token", redlock_lease_token(session->lease));
    tool_json_string(&json, "mode", tool_mode_name(session->options->shared));
    if (session->options->lock.fencing) {
        /* A string: jq and JavaScript read numbers as doubles, which have 53 bits. */
        tool_json_string(&json, "fence", TOOL_TEXT(32, "%" PRIu64, redlock_lease_fence(session->lease)));
    }
    tool_json_number(&json, "validity_ms", redlock_lease_validity_ms(session->lease));
    tool_report_wait(&json, session);
    tool_report_votes(&json, session->result, false);
    tool_json_end(&json);
}

int tool_acquire(struct tool_session *session) {
    int status = 0;
    if (!tool_session_acquire(session, false, NULL, NULL, &status)) {
        return status;
    }
    redlock_lease *lease = session->lease;
    if (session->options->json) {
        print_json(session);
    } else if (session->options->lock.fencing) {
        printf("%s %" PRIu64 "\n", redlock_lease_token(lease), redlock_lease_fence(lease));
    } else {
        printf("%s\n", redlock_lease_token(lease));
    }
    status = tool_report_flush(session->options);
    if (status != 0) {
        /* Nobody got the token, so nobody could release the lock. */
        const int code = tool_session_release(session, lease);
        tool_report_output(session->options, "nobody has the token of '%s': %s", session->options->resource,
                           code == REDLOCK_OK ? "the lock is released" : "the keys that are left end with their ttl");
        return status;
    }
    redlock_lease_forget(lease);
    tool_nodes_warn(session, true);
    return 0;
}
