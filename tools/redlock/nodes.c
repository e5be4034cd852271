/* Warnings about nodes: what is wrong with their configuration, and why there is no quorum. */
#include "nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "values/values.h"

bool tool_nodes_is_far(const struct tool_session *session, const redlock_node_info *info) {
    return info->state == REDLOCK_NODE_READY &&
           info->round_trip_min_us > session->options->manager.node_timeout_ms * 1000;
}

/* With room for a node that is slow now and then. */
static int64_t timeout_for_ms(int64_t round_trip_us) {
    const int64_t trip_ms = (round_trip_us + 999) / 1000;
    const int64_t ms = (2 * trip_ms + 49) / 50 * 50;
    return ms < TOOL_TIMEOUT_MS_MAX ? ms : TOOL_TIMEOUT_MS_MAX;
}

const char *tool_nodes_far_text(const struct tool_session *session, const redlock_node_info *info, char *buffer,
                                size_t size) {
    return tool_text(buffer, size,
                     "too far away: a round trip takes %" PRId64 " ms, but --node-timeout is %" PRId64
                     "; give --node-timeout %" PRId64,
                     (info->round_trip_min_us + 999) / 1000, session->options->manager.node_timeout_ms,
                     timeout_for_ms(info->round_trip_min_us));
}

int64_t tool_nodes_timeout_needed_ms(const struct tool_session *session) {
    int64_t needed_ms = 0;
    for (size_t i = 0; i < redlock_manager_node_count(session->manager); i++) {
        redlock_node_info info = tool_session_node(session, i);
        const int64_t ms = tool_nodes_is_far(session, &info) ? timeout_for_ms(info.round_trip_min_us) : 0;
        needed_ms = ms > needed_ms ? ms : needed_ms;
    }
    return needed_ms;
}

bool tool_nodes_may_vote(const struct tool_session *session, const redlock_node_info *info) {
    return info->state == REDLOCK_NODE_READY && !tool_nodes_is_far(session, info) && info->quarantine_ms == 0;
}

static void append_why_not(const struct tool_session *session, char *buffer, size_t size,
                           const redlock_node_info *info) {
    tool_append(buffer, size, "%s: ", info->name);
    if (tool_nodes_is_far(session, info)) {
        tool_append(buffer, size, "%s", TOOL_NODES_FAR(session, info));
    } else if (info->state == REDLOCK_NODE_READY) {
        tool_append(buffer, size, "no vote for %s: %s", TOOL_DURATION(info->quarantine_ms), info->quarantine);
    } else {
        tool_append(buffer, size, "%s%s%s", redlock_node_state_name(info->state), info->error[0] != '\0' ? ", " : "",
                    info->error);
    }
}

size_t tool_nodes_summary(const struct tool_session *session, char *buffer, size_t size) {
    size_t count = redlock_manager_node_count(session->manager);
    size_t ready = 0;
    size_t voters = 0;
    for (size_t i = 0; i < count; i++) {
        redlock_node_info info = tool_session_node(session, i);
        ready += info.state == REDLOCK_NODE_READY;
        voters += tool_nodes_may_vote(session, &info);
    }
    if (voters < ready) {
        snprintf(buffer, size, "%zu of %zu nodes may vote", voters, count);
    } else {
        snprintf(buffer, size, "%zu of %zu nodes %s ready", ready, count, ready == 1 ? "is" : "are");
    }
    const char *separator = " (";
    for (size_t i = 0; i < count; i++) {
        redlock_node_info info = tool_session_node(session, i);
        if (!tool_nodes_may_vote(session, &info)) {
            tool_append(buffer, size, "%s", separator);
            append_why_not(session, buffer, size, &info);
            separator = "; ";
        }
    }
    tool_append(buffer, size, "%s", voters < count ? ")" : "");
    return voters;
}

int64_t tool_nodes_quorum_in_ms(const struct tool_session *session) {
    int64_t quarantines_ms[REDLOCK_NODES_MAX];
    size_t count = redlock_manager_node_count(session->manager);
    size_t quorum = redlock_manager_quorum(session->manager);
    size_t ready = 0;
    for (size_t i = 0; i < count; i++) {
        redlock_node_info info = tool_session_node(session, i);
        if (info.state == REDLOCK_NODE_READY && !tool_nodes_is_far(session, &info)) {
            quarantines_ms[ready++] = info.quarantine_ms;
        }
    }
    if (ready < quorum) {
        return 0;
    }
    qsort(quarantines_ms, ready, sizeof *quarantines_ms, tool_number_order);
    return quarantines_ms[quorum - 1];
}

void tool_nodes_warn(struct tool_session *session, bool of_unusable) {
    const struct tool_options *options = session->options;
    /* With -v the log has it; the table of status shows it. */
    const bool shown_elsewhere = options->verbose || options->command == TOOL_STATUS;
    size_t count = shown_elsewhere ? 0 : redlock_manager_node_count(session->manager);
    for (size_t i = 0; i < count; i++) {
        redlock_node_info info = tool_session_node(session, i);
        uint32_t bit = UINT32_C(1) << i;
        if (info.state == REDLOCK_NODE_UNUSABLE && (session->warned_unusable & bit) == 0) {
            session->warned_unusable |= bit;
            if (of_unusable) {
                tool_report_warn(options, "NODE_UNUSABLE", "node %s does not vote: %s", info.name, info.error);
            }
        }
        if (of_unusable && tool_nodes_is_far(session, &info) && (session->warned_far & bit) == 0) {
            session->warned_far |= bit;
            tool_report_warn(options, "NODE_FAR", "node %s: %s", info.name, TOOL_NODES_FAR(session, &info));
        }
        /* Refused credentials are reported as such. */
        if (info.warning[0] != '\0' && info.credentials_error[0] == '\0' && (session->warned_settings & bit) == 0) {
            session->warned_settings |= bit;
            tool_report_warn(options, TOOL_WARNING_SETTINGS, "node %s: %s", info.name, info.warning);
        }
    }
}
