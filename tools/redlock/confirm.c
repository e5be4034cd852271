/* After a release that too few nodes have confirmed: asks again for a while. */
#include "confirm.h"

#define PAUSE_MS INT64_C(20)

/* The library goes on with the first release, too. So LOST is a yes: no key is left at a quorum. */
static int release_again(struct tool_session *session, const char *token) {
    redlock_acquire_options options;
    redlock_lease *lease;
    redlock_acquire_options_default(&options);
    options.ttl_ms = session->options->ttl_ms;
    options.lock_delay_ms = session->options->lock_delay_ms;
    const int code = redlock_adopt(session->manager, session->options->resource, token, &options, &lease);
    return code != REDLOCK_OK ? code
                              : tool_session_finish(session, redlock_release(lease, tool_session_completed, session));
}

/* That a node has no key any more says nothing new: the votes of the first release tell which nodes
 * have confirmed it. */
static void report_first(struct tool_session *session, redlock_result *first) {
    redlock_result_free(session->result);
    session->result = first;
    session->code = REDLOCK_ERR_NO_QUORUM;
}

bool tool_confirm_release(struct tool_session *session, const char *token, int64_t rest_ms) {
    const int64_t connect_ms = session->options->connect_timeout_ms;
    const int64_t over_ms = tool_session_age_ms(session) + (rest_ms < connect_ms ? rest_ms : connect_ms);
    redlock_result *first = session->result;
    int code = REDLOCK_ERR_NO_QUORUM;
    session->result = NULL;
    while (code == REDLOCK_ERR_NO_QUORUM && tool_session_age_ms(session) < over_ms) {
        tool_session_pause(session, PAUSE_MS, NULL);
        code = release_again(session, token);
    }
    report_first(session, first);
    return code == REDLOCK_OK || code == REDLOCK_ERR_LOST;
}
