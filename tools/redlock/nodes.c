/* What is told of the nodes without being asked: what is wrong with their configuration, and why nothing goes on. */
#include "nodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

static redlock_node_info node_info(const struct tool_session *session, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    (void)redlock_manager_node(session->manager, index, &info); /* the index is in range */
    return info;
}

/* Appends what fits. */
__attribute__((format(printf, 3, 4))) static void append(char *buffer, size_t size, const char *format, ...) {
    size_t used = strlen(buffer);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(buffer + used, size - used, format, arguments);
    va_end(arguments);
}

size_t tool_nodes_summary(const struct tool_session *session, char *buffer, size_t size) {
    size_t count = redlock_manager_node_count(session->manager);
    size_t ready = 0;
    for (size_t i = 0; i < count; i++) {
        ready += node_info(session, i).state == REDLOCK_NODE_READY;
    }
    snprintf(buffer, size, "%zu of %zu nodes %s ready", ready, count, ready == 1 ? "is" : "are");
    const char *separator = " (";
    for (size_t i = 0; i < count; i++) {
        redlock_node_info info = node_info(session, i);
        if (info.state != REDLOCK_NODE_READY) {
            append(buffer, size, "%s%s: %s%s%s", separator, info.name, redlock_node_state_name(info.state),
                   info.error[0] != '\0' ? ", " : "", info.error);
            separator = "; ";
        }
    }
    append(buffer, size, "%s", ready < count ? ")" : "");
    return ready;
}

/* -v has told it through the log; the table of status shows it. */
static bool is_told_otherwise(const struct tool_options *options) {
    return options->verbose || options->command == TOOL_STATUS;
}

static void warn(struct tool_session *session, bool of_unusable) {
    const struct tool_options *options = session->options;
    size_t count = is_told_otherwise(options) ? 0 : redlock_manager_node_count(session->manager);
    for (size_t i = 0; i < count; i++) {
        redlock_node_info info = node_info(session, i);
        uint32_t bit = UINT32_C(1) << i;
        if (info.state == REDLOCK_NODE_UNUSABLE && (session->told_unusable & bit) == 0) {
            session->told_unusable |= bit;
            if (of_unusable) {
                tool_report_warn(options, "NODE_UNUSABLE", "node %s does not vote: %s", info.name, info.error);
            }
        }
        if (info.warning[0] != '\0' && (session->told_settings & bit) == 0) {
            session->told_settings |= bit;
            tool_report_warn(options, "NODE_SETTINGS", "node %s: %s", info.name, info.warning);
        }
    }
}

void tool_nodes_warn(struct tool_session *session) {
    warn(session, true);
}

void tool_nodes_warn_after_failure(struct tool_session *session) {
    warn(session, false);
}
