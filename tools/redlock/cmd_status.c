/* redlock status: shows the nodes, and who holds each resource, where, and for how long. */
#include "commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "holders.h"
#include "nodes.h"
#include "report.h"
#include "table.h"
#include "text.h"

/* What the nodes said. */
struct findings {
    size_t nodes;
    size_t ready;
    size_t voters; /* ready nodes that no guard keeps from voting on an acquire */
    size_t quorum;
    size_t queueless;         /* ready nodes that cannot keep a queue for us */
    redlock_result **results; /* one for each resource; NULL if there was no memory */
    bool unanswered;          /* for some resource, fewer than a quorum of nodes could tell */
};

static redlock_node_info node_info(const struct tool_session *session, size_t index) {
    redlock_node_info info = {.size = sizeof info};
    (void)redlock_manager_node(session->manager, index, &info); /* the index is in range */
    return info;
}

static struct tool_holders count_holders(const struct findings *findings, size_t resource) {
    return tool_holders_count(findings->results[resource], findings->nodes, findings->quorum);
}

static bool keeps_no_queue(const redlock_node_info *info) {
    return info->state == REDLOCK_NODE_READY && info->queue_refused;
}

static bool is_undecided(const redlock_node_info *info) {
    return info->state == REDLOCK_NODE_READY && !info->listens && !info->queue_refused;
}

static bool all_listen_or_refuse(const struct tool_session *session, size_t nodes) {
    for (size_t i = 0; i < nodes; i++) {
        redlock_node_info info = node_info(session, i);
        if (is_undecided(&info)) {
            return false;
        }
    }
    return true;
}

static void time_is_up(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)timer, (void)events;
}

/* Waits until the nodes that are ready listen or refuse to. All connections together have the
 * connect timeout. */
static void await_listening(struct tool_session *session, size_t nodes) {
    const int64_t rest_ms = session->options->connect_timeout_ms - tool_session_age_ms(session);
    if (rest_ms <= 0) {
        return;
    }
    ev_timer timer;
    ev_now_update(session->loop);
    ev_timer_init(&timer, time_is_up, (double)rest_ms / 1000, 0.);
    ev_timer_start(session->loop, &timer);
    while (session->stop_signal == 0 && ev_is_active(&timer) && !all_listen_or_refuse(session, nodes)) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    ev_timer_stop(session->loop, &timer);
}

static int inspect_all(struct tool_session *session, struct findings *findings) {
    const struct tool_options *options = session->options;
    for (size_t i = 0; i < options->operand_count && session->stop_signal == 0; i++) {
        int started = redlock_inspect(session->manager, options->operands[i], tool_session_completed, session);
        int code = tool_session_finish(session, started);
        if (code != REDLOCK_OK && code != REDLOCK_ERR_NO_QUORUM) {
            return tool_report_failure(session);
        }
        findings->results[i] = session->result;
        session->result = NULL;
        findings->unanswered = findings->unanswered || count_holders(findings, i).answered < findings->quorum;
    }
    await_listening(session, findings->nodes);
    if (session->stop_signal != 0) {
        return tool_session_stopped(session);
    }
    /* Count last, to include what the inspections learned of the nodes. */
    for (size_t i = 0; i < findings->nodes; i++) {
        redlock_node_info info = node_info(session, i);
        findings->ready += info.state == REDLOCK_NODE_READY;
        findings->voters += info.state == REDLOCK_NODE_READY && info.quarantine_ms == 0;
        findings->queueless += keeps_no_queue(&info);
    }
    return 0;
}

/* Appends a remark about a node. */
static void add_remark(char *buffer, size_t size, const char *part) {
    size_t used = strlen(buffer);
    if (part[0] != '\0') {
        snprintf(buffer + used, size - used, "%s%s", used > 0 ? "; " : "", part);
    }
}

static void remark(const redlock_node_info *info, char *buffer, size_t size) {
    buffer[0] = '\0';
    if (info->quarantine_ms > 0) {
        char duration[32];
        char quarantine[512];
        snprintf(quarantine, sizeof quarantine, "no vote for %s: %s",
                 tool_duration_format(info->quarantine_ms, duration, sizeof duration), info->quarantine);
        add_remark(buffer, size, quarantine);
    }
    add_remark(buffer, size, info->error);
    add_remark(buffer, size, info->warning);
    if (keeps_no_queue(info) || is_undecided(info)) {
        char queue[512];
        snprintf(queue, sizeof queue, "%s%s%s", keeps_no_queue(info) ? "no queue" : "not subscribed yet",
                 info->queue_error[0] != '\0' ? ": " : "", info->queue_error);
        add_remark(buffer, size, queue);
    }
}

struct node_cells {
    char uptime[32];
    char round_trip[32];
    char remark[1024];
};

static void print_summary(const struct tool_session *session, const struct findings *findings) {
    printf("%zu of %zu nodes ready", findings->ready, findings->nodes);
    if (findings->voters < findings->ready) {
        printf(", %zu of them without a vote", findings->ready - findings->voters);
    }
    printf("; a quorum is %zu: locks can%s be taken", findings->quorum,
           findings->voters >= findings->quorum ? "" : "not");
    int64_t ms = tool_nodes_quorum_in_ms(session);
    char duration[32];
    if (ms > 0) {
        printf(" for %s", tool_duration_format(ms, duration, sizeof duration));
    }
    if (findings->queueless + findings->quorum > findings->nodes) {
        fputs("; too few nodes keep queues: who waits tries again after random delays", stdout);
    }
    putchar('\n');
}

static void print_nodes(const struct tool_session *session, const struct findings *findings) {
    struct tool_row rows[REDLOCK_NODES_MAX + 1] = {
        {{"NODE", "STATE", "VERSION", "ROLE", "UPTIME", "ROUND TRIP", "REMARK"}}};
    struct node_cells cells[REDLOCK_NODES_MAX] = {0};
    for (size_t i = 0; i < findings->nodes; i++) {
        redlock_node_info info = node_info(session, i);
        if (info.uptime_s >= 0 && info.uptime_s < 60) {
            snprintf(cells[i].uptime, sizeof cells[i].uptime, "%" PRId64 "s", info.uptime_s);
        } else if (info.uptime_s >= 0) {
            tool_duration_format(info.uptime_s * 1000, cells[i].uptime, sizeof cells[i].uptime);
        }
        if (info.round_trip_us >= 0) {
            snprintf(cells[i].round_trip, sizeof cells[i].round_trip, "%" PRId64 ".%03" PRId64 "ms",
                     info.round_trip_us / 1000, info.round_trip_us % 1000);
        }
        remark(&info, cells[i].remark, sizeof cells[i].remark);
        rows[i + 1] = (struct tool_row){{info.name, redlock_node_state_name(info.state), info.version, info.role,
                                         cells[i].uptime, cells[i].round_trip, cells[i].remark}};
    }
    tool_table_print(rows, findings->nodes + 1);
    print_summary(session, findings);
}

static void print_remaining(int64_t ms) {
    char duration[32];
    if (ms < 0) {
        fputs("for ever (no ttl)", stdout);
    } else {
        printf("for %s", tool_duration_format(ms, duration, sizeof duration));
    }
}

/* The lines of the nodes show the whole token. */
static void print_verdict(const struct tool_holders *holders) {
    const char *holder = redlock_token_holder(holders->token);
    switch (holders->verdict) {
    case TOOL_HELD:
        fputs("held by ", stdout);
        tool_print_safe(stdout, holder[0] != '\0' ? holder : holders->token);
        printf(" on %zu of %zu nodes, ", holders->held, holders->nodes);
        print_remaining(holders->remaining_ms);
        break;
    case TOOL_FREE:
        printf("free on %zu of %zu nodes", holders->free, holders->nodes);
        break;
    case TOOL_SPLIT:
        printf("split: no token is on a quorum (%zu), and only %zu of %zu nodes are free; ", holders->quorum,
               holders->free, holders->nodes);
        fputs("this ends when a ttl ends or its owner tries again", stdout);
        break;
    case TOOL_UNKNOWN:
        if (holders->answered < holders->quorum) {
            printf("unknown: %zu of %zu nodes could tell", holders->answered, holders->nodes);
        } else {
            printf("unknown: held on %zu, free on %zu; %zu of %zu nodes could not tell",
                   holders->answered - holders->free, holders->free, holders->nodes - holders->answered,
                   holders->nodes);
        }
        break;
    }
}

static void print_waiters(const redlock_result *result, const struct tool_holders *holders) {
    int64_t waiters = result != NULL ? redlock_result_waiters(result) : -1;
    int64_t waited_ms = result != NULL ? redlock_result_waited_ms(result) : -1;
    char duration[32];
    if (waiters > 0) {
        printf("; %" PRId64 " %s", waiters, waiters == 1 ? "waits" : "wait");
        if (waited_ms >= 0) {
            printf(", %s %s", waiters == 1 ? "for" : "the first for",
                   tool_duration_format(waited_ms, duration, sizeof duration));
        }
    } else if (waiters < 0 && holders->answered >= holders->quorum) {
        fputs("; the nodes cannot tell who waits", stdout);
    }
    putchar('\n');
}

/* An error reply of Redis begins with a word in capitals: "NOPERM this user has no …". */
static bool is_error_reply(const char *error) {
    size_t capitals = strspn(error, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return capitals > 1 && error[capitals] == ' ';
}

static void print_vote(const redlock_vote *vote) {
    fputs("  ", stdout);
    tool_print_safe(stdout, vote->node);
    fputs(": ", stdout);
    switch (vote->kind) {
    case REDLOCK_VOTE_GRANTED:
        fputs("held by ", stdout);
        tool_print_safe(stdout, vote->holder);
        fputs(", ", stdout);
        print_remaining(vote->holder_ttl_ms);
        break;
    case REDLOCK_VOTE_DENIED:
        fputs("free", stdout);
        break;
    default:
        fputs(is_error_reply(vote->error) ? "cannot tell: " : "no answer: ", stdout);
        tool_print_safe(stdout, vote->error[0] != '\0' ? vote->error : redlock_vote_name(vote->kind));
        break;
    }
    putchar('\n');
}

static void print_resource(const char *resource, const redlock_result *result, const struct tool_holders *holders) {
    putchar('\n');
    tool_print_safe(stdout, resource);
    fputs(": ", stdout);
    print_verdict(holders);
    print_waiters(result, holders);
    for (size_t i = 0; result != NULL && i < holders->nodes; i++) {
        redlock_vote vote = {.size = sizeof vote};
        if (redlock_result_vote(result, i, &vote) == REDLOCK_OK) {
            print_vote(&vote);
        }
    }
}

static void number_or_null(struct tool_json *json, const char *name, int64_t value) {
    if (value >= 0) {
        tool_json_number(json, name, value);
    } else {
        tool_json_null(json, name);
    }
}

static void json_nodes(struct tool_json *json, const struct tool_session *session, size_t nodes) {
    tool_json_open(json, "nodes", '[');
    for (size_t i = 0; i < nodes; i++) {
        redlock_node_info info = node_info(session, i);
        tool_json_open(json, NULL, '{');
        tool_json_string(json, "node", info.name);
        tool_json_string(json, "state", redlock_node_state_name(info.state));
        tool_json_string(json, "version", info.version);
        tool_json_string(json, "role", info.role);
        number_or_null(json, "uptime_s", info.uptime_s);
        number_or_null(json, "round_trip_us", info.round_trip_us);
        tool_json_string(json, "warning", info.warning);
        tool_json_string(json, "error", info.error);
        tool_json_number(json, "quarantine_ms", info.quarantine_ms);
        tool_json_string(json, "quarantine", info.quarantine);
        tool_json_string(json, "queue_error", info.queue_error);
        tool_json_bool(json, "queue_refused", info.queue_refused);
        tool_json_close(json, '}');
    }
    tool_json_close(json, ']');
}

static void json_resource(struct tool_json *json, const char *resource, const redlock_result *result,
                          const struct tool_holders *holders) {
    tool_json_open(json, NULL, '{');
    tool_json_string(json, "resource", resource);
    tool_json_string(json, "verdict", tool_verdict_name(holders->verdict));
    if (holders->verdict == TOOL_HELD) {
        tool_json_string(json, "token", holders->token);
        tool_json_string(json, "holder_text", redlock_token_holder(holders->token));
        number_or_null(json, "remaining_ms", holders->remaining_ms);
    }
    number_or_null(json, "waiters", result != NULL ? redlock_result_waiters(result) : -1);
    number_or_null(json, "waited_ms", result != NULL ? redlock_result_waited_ms(result) : -1);
    tool_json_number(json, "held_on", (int64_t)holders->held);
    tool_json_number(json, "free_on", (int64_t)holders->free);
    tool_json_number(json, "unknown_on", (int64_t)(holders->nodes - holders->answered));
    tool_report_votes(json, result, true);
    tool_json_close(json, '}');
}

static bool lacks_quorum(const struct findings *findings) {
    return findings->voters < findings->quorum || findings->unanswered;
}

static void print_json(const struct tool_session *session, const struct findings *findings) {
    const struct tool_options *options = session->options;
    struct tool_json json = {.out = stdout};
    tool_json_open(&json, NULL, '{');
    if (lacks_quorum(findings)) {
        tool_json_string(&json, "error", redlock_error_name(REDLOCK_ERR_NO_QUORUM));
        bool quarantined = findings->ready >= findings->quorum && !findings->unanswered;
        tool_json_string(&json, "message",
                         quarantined ? "no quorum: guards keep too many nodes from voting"
                                     : redlock_strerror(REDLOCK_ERR_NO_QUORUM));
    }
    json_nodes(&json, session, findings->nodes);
    tool_json_number(&json, "ready", (int64_t)findings->ready);
    tool_json_number(&json, "voting", (int64_t)findings->voters);
    tool_json_number(&json, "quorum", (int64_t)findings->quorum);
    tool_json_open(&json, "resources", '[');
    for (size_t i = 0; i < options->operand_count; i++) {
        struct tool_holders holders = count_holders(findings, i);
        json_resource(&json, options->operands[i], findings->results[i], &holders);
    }
    tool_json_close(&json, ']');
    tool_json_close(&json, '}');
    putchar('\n');
}

static int print_all(const struct tool_session *session, const struct findings *findings) {
    const struct tool_options *options = session->options;
    if (options->json) {
        print_json(session, findings);
    } else if (!options->quiet) {
        print_nodes(session, findings);
        for (size_t i = 0; i < options->operand_count; i++) {
            struct tool_holders holders = count_holders(findings, i);
            print_resource(options->operands[i], findings->results[i], &holders);
        }
    }
    int status = tool_report_flush(options);
    if (status != 0) {
        return status;
    }
    return lacks_quorum(findings) ? TOOL_EXIT_NO_QUORUM : 0;
}

int tool_status(struct tool_session *session) {
    size_t resources = session->options->operand_count;
    struct findings findings = {.nodes = redlock_manager_node_count(session->manager),
                                .quorum = redlock_manager_quorum(session->manager)};
    findings.results = calloc(resources + 1, sizeof *findings.results);
    if (findings.results == NULL) {
        tool_report_error(session->options, redlock_error_name(REDLOCK_ERR_NO_MEMORY),
                          redlock_strerror(REDLOCK_ERR_NO_MEMORY), NULL);
        return TOOL_EXIT_SYSTEM;
    }
    tool_session_connect(session, true);
    int status = inspect_all(session, &findings);
    if (status == 0) {
        status = print_all(session, &findings);
    }
    for (size_t i = 0; i < resources; i++) {
        redlock_result_free(findings.results[i]);
    }
    free(findings.results);
    return status;
}
