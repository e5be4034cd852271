/* Prints what status found, as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "json.h"
#include "nodes.h"
#include "report.h"
#include "status.h"

static void json_nodes(struct tool_json *json, const struct tool_findings *findings) {
    tool_json_open(json, "nodes", '[');
    for (size_t i = 0; i < findings->nodes; i++) {
        const struct tool_node *node = &findings->at[i];
        const redlock_node_info info = node->info;
        tool_json_open(json, NULL, '{');
        tool_json_string(json, "node", info.name);
        tool_json_string(json, "state", redlock_node_state_name(info.state));
        tool_json_string(json, "version", info.version);
        tool_json_string(json, "role", info.role);
        tool_json_known(json, "uptime_s", info.uptime_s);
        tool_json_known(json, "round_trip_us", info.round_trip_us);
        tool_json_known(json, "round_trip_min_us", info.round_trip_min_us);
        tool_json_string(json, "warning", info.warning);
        tool_json_string(json, "error", info.error);
        tool_json_known(json, "quarantine_ms", node->quarantine_ms);
        tool_json_string(json, "quarantine", info.quarantine);
        tool_json_string(json, "queue_error", info.queue_error);
        tool_json_bool(json, "queue_refused", info.queue_refused);
        tool_json_string(json, "shared_error", info.shared_error);
        tool_json_string(json, "write_error", node->write_error);
        if (findings->all) {
            tool_json_bool(json, "listed", node->listed);
            tool_json_string(json, "list_error", node->list_error);
        }
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

static void json_readers(struct tool_json *json, const redlock_result *result) {
    redlock_lock_reader reader;
    tool_json_open(json, "read_by", '[');
    for (size_t i = 0; (reader = tool_reader(result, i)).token != NULL; i++) {
        tool_json_open(json, NULL, '{');
        tool_json_string(json, "token", reader.token);
        tool_json_string(json, "holder_text", reader.holder_text);
        tool_json_number(json, "held_on", (int64_t)reader.nodes);
        tool_json_number(json, "remaining_ms", reader.ttl_ms);
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

static void json_waiters(struct tool_json *json, const redlock_result *result) {
    redlock_lock_waiter waiter;
    tool_json_open(json, "waiting", '[');
    for (size_t i = 0; (waiter = tool_waiter(result, i)).token != NULL; i++) {
        tool_json_open(json, NULL, '{');
        tool_json_string(json, "token", waiter.token);
        tool_json_string(json, "holder_text", waiter.holder_text);
        tool_json_string(json, "mode", tool_mode_name(waiter.reads));
        tool_json_number(json, "queued_on", (int64_t)waiter.nodes);
        tool_json_number(json, "waited_ms", waiter.waited_ms);
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

static void json_slots(struct tool_json *json, const struct tool_lock *lock) {
    tool_json_number(json, "limit", (int64_t)lock->limit);
    tool_json_number(json, "taken", (int64_t)lock->taken);
    tool_json_open(json, "slots", '[');
    for (size_t i = 0; i < lock->limit; i++) {
        const struct tool_holders *holders = &lock->slots[i].holders;
        if (holders->verdict == TOOL_FREE) {
            continue;
        }
        tool_json_open(json, NULL, '{');
        tool_json_number(json, "slot", (int64_t)i);
        tool_json_string(json, "verdict", tool_verdict_name(holders->verdict));
        if (holders->verdict == TOOL_HELD) {
            tool_json_string(json, "token", holders->token);
            tool_json_string(json, "holder_text", redlock_token_holder(holders->token));
            tool_json_known(json, "remaining_ms", holders->remaining_ms);
        }
        tool_json_number(json, "held_on", (int64_t)holders->held);
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

static void json_lock(struct tool_json *json, const struct tool_lock *lock) {
    const struct tool_holders *holders = &lock->holders;
    tool_json_open(json, NULL, '{');
    tool_json_string(json, "resource", lock->resource);
    tool_json_string(json, "verdict", tool_verdict_name(holders->verdict));
    if (holders->verdict == TOOL_HELD || (lock->result == NULL && holders->token != NULL)) {
        tool_json_string(json, "token", holders->token);
        tool_json_string(json, "holder_text", redlock_token_holder(holders->token));
        tool_json_known(json, "remaining_ms", holders->remaining_ms);
    }
    if (holders->verdict == TOOL_HELD) {
        tool_json_string(json, "mode", tool_mode_name(holders->readers > 0));
        tool_json_number(json, "readers", holders->readers);
    }
    tool_json_known(json, "waiters", lock->waiters);
    tool_json_known(json, "waited_ms", lock->waited_ms);
    tool_json_number(json, "held_on", (int64_t)holders->held);
    tool_json_number(json, "free_on", (int64_t)holders->free);
    tool_json_number(json, "unknown_on", (int64_t)(holders->nodes - holders->answered));
    if (lock->slots != NULL) {
        json_slots(json, lock);
    }
    if (lock->result != NULL) {
        tool_report_votes(json, lock->result, true);
        json_readers(json, lock->result);
        json_waiters(json, lock->result);
    }
    tool_json_close(json, '}');
}

/* Why there is no quorum. */
static void write_reason(const struct tool_session *session, const struct tool_findings *findings, char *reason,
                         size_t size) {
    if (findings->far > 0 && findings->voters < findings->quorum) {
        (void)snprintf(reason, size,
                       "no quorum: a round trip to too many nodes takes longer than --node-timeout %" PRId64
                       ": give --node-timeout %" PRId64,
                       session->options->manager.node_timeout_ms, tool_nodes_timeout_needed_ms(session));
    } else if (tool_status_is_slow(findings)) {
        (void)snprintf(reason, size, "no quorum: too few nodes answered within --node-timeout %" PRId64,
                       session->options->manager.node_timeout_ms);
    } else if (findings->refusing > 0 && findings->voters < findings->quorum) {
        (void)snprintf(reason, size, "no quorum: too many nodes take no writes; write_error says why");
    } else {
        const bool quarantined = findings->ready >= findings->quorum && !findings->unanswered;
        (void)snprintf(reason, size, "%s",
                       quarantined ? "no quorum: guards keep too many nodes from voting"
                                   : redlock_strerror(REDLOCK_ERR_NO_QUORUM));
    }
}

void tool_status_print_json(FILE *out, const struct tool_session *session, const struct tool_findings *findings) {
    struct tool_json json = tool_json_begin(out);
    char reason[160];
    if (tool_status_lacks_quorum(findings)) {
        tool_json_string(&json, "error", redlock_error_name(REDLOCK_ERR_NO_QUORUM));
        write_reason(session, findings, reason, sizeof reason);
        tool_json_string(&json, "message", reason);
    }
    json_nodes(&json, findings);
    tool_json_number(&json, "ready", (int64_t)findings->ready);
    tool_json_number(&json, "voting", (int64_t)findings->voters);
    tool_json_number(&json, "quorum", (int64_t)findings->quorum);
    tool_json_open(&json, "resources", '[');
    for (size_t i = 0; i < findings->lock_count; i++) {
        json_lock(&json, &findings->locks[i]);
    }
    tool_json_close(&json, ']');
    tool_json_end(&json);
}
