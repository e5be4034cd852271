/* What the group tells of itself: histograms, counts of votes, events, probes, and the log messages
 * about a lease. Losses are errors; attempts, votes and results are at debug level. */
#define REDLOCK_PROBE_SEMAPHORES
#include "group/tell.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "core/time.h"

REDLOCK_PROBE_MAP(REDLOCK_PROBE_SEMAPHORE)

#define TEXT_SIZE 1024 /* the text of 31 nodes may be longer: then it is cut */

const char *redlock_telemetry_kind_name(redlock_telemetry_kind kind) {
    static const char *const names[] = {
        [REDLOCK_TELEMETRY_STARTED] = "STARTED",   [REDLOCK_TELEMETRY_DENIED] = "DENIED",
        [REDLOCK_TELEMETRY_QUEUED] = "QUEUED",     [REDLOCK_TELEMETRY_ACQUIRED] = "ACQUIRED",
        [REDLOCK_TELEMETRY_FAILED] = "FAILED",     [REDLOCK_TELEMETRY_ADOPTED] = "ADOPTED",
        [REDLOCK_TELEMETRY_EXTENDED] = "EXTENDED", [REDLOCK_TELEMETRY_LOST] = "LOST",
        [REDLOCK_TELEMETRY_RELEASED] = "RELEASED", [REDLOCK_TELEMETRY_FORGOTTEN] = "FORGOTTEN",
        [REDLOCK_TELEMETRY_NODE_UP] = "NODE_UP",   [REDLOCK_TELEMETRY_NODE_DOWN] = "NODE_DOWN",
        [REDLOCK_TELEMETRY_EXPIRING] = "EXPIRING"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

const char *redlock_voted_name(redlock_voted voted) {
    static const char *const names[REDLOCK_VOTED_MAX] = {[REDLOCK_VOTED_GRANTED] = "granted",
                                                         [REDLOCK_VOTED_DENIED] = "denied",
                                                         [REDLOCK_VOTED_OTHER] = "other",
                                                         [REDLOCK_VOTED_OURS] = "ours",
                                                         [REDLOCK_VOTED_CONNECTION] = "connection",
                                                         [REDLOCK_VOTED_TIMEOUT] = "timeout",
                                                         [REDLOCK_VOTED_STALLED] = "stalled",
                                                         [REDLOCK_VOTED_NOT_A_NODE] = "not_a_node",
                                                         [REDLOCK_VOTED_REPLICA] = "replica",
                                                         [REDLOCK_VOTED_SAME_SERVER] = "same_server",
                                                         [REDLOCK_VOTED_QUARANTINE] = "quarantine",
                                                         [REDLOCK_VOTED_AUTH] = "auth",
                                                         [REDLOCK_VOTED_NOPERM] = "noperm",
                                                         [REDLOCK_VOTED_NOSCRIPT] = "noscript",
                                                         [REDLOCK_VOTED_OOM] = "oom",
                                                         [REDLOCK_VOTED_MISCONF] = "misconf",
                                                         [REDLOCK_VOTED_LOADING] = "loading",
                                                         [REDLOCK_VOTED_BUSY] = "busy",
                                                         [REDLOCK_VOTED_CLUSTER] = "cluster",
                                                         [REDLOCK_VOTED_SERVER] = "server",
                                                         [REDLOCK_VOTED_TLS] = "tls"};
    return (size_t)voted < REDLOCK_VOTED_MAX && names[voted] ? names[voted] : "";
}

redlock_voted redlock_tell_cause(redlock_vote_kind vote, const struct redlock_text *text) {
    static const uint8_t causes[] = {[REDLOCK_CAUSE_OURS] = REDLOCK_VOTED_OURS,
                                     [REDLOCK_CAUSE_CONNECTION] = REDLOCK_VOTED_CONNECTION,
                                     [REDLOCK_CAUSE_TIMEOUT] = REDLOCK_VOTED_TIMEOUT,
                                     [REDLOCK_CAUSE_STALLED] = REDLOCK_VOTED_STALLED,
                                     [REDLOCK_CAUSE_NOT_A_NODE] = REDLOCK_VOTED_NOT_A_NODE,
                                     [REDLOCK_CAUSE_REPLICA] = REDLOCK_VOTED_REPLICA,
                                     [REDLOCK_CAUSE_SAME_SERVER] = REDLOCK_VOTED_SAME_SERVER,
                                     [REDLOCK_CAUSE_TLS] = REDLOCK_VOTED_TLS,
                                     [REDLOCK_CAUSE_QUARANTINE] = REDLOCK_VOTED_QUARANTINE,
                                     [REDLOCK_CAUSE_AUTH] = REDLOCK_VOTED_AUTH,
                                     [REDLOCK_CAUSE_DATABASE] = REDLOCK_VOTED_SERVER,
                                     [REDLOCK_CAUSE_NOPERM] = REDLOCK_VOTED_NOPERM,
                                     [REDLOCK_CAUSE_NOSCRIPT] = REDLOCK_VOTED_NOSCRIPT,
                                     [REDLOCK_CAUSE_OOM] = REDLOCK_VOTED_OOM,
                                     [REDLOCK_CAUSE_MISCONF] = REDLOCK_VOTED_MISCONF,
                                     [REDLOCK_CAUSE_LOADING] = REDLOCK_VOTED_LOADING,
                                     [REDLOCK_CAUSE_BUSY] = REDLOCK_VOTED_BUSY,
                                     [REDLOCK_CAUSE_CLUSTER] = REDLOCK_VOTED_CLUSTER,
                                     [REDLOCK_CAUSE_SERVER] = REDLOCK_VOTED_SERVER,
                                     [REDLOCK_CAUSE_NO_LUA] = REDLOCK_VOTED_SERVER};
    const size_t cause = redlock_text_cause(text);
    if (vote == REDLOCK_VOTE_DENIED) {
        return REDLOCK_VOTED_DENIED;
    }
    assert(vote != REDLOCK_VOTE_GRANTED);
    /* No cause is GRANTED, so 0 stands for one that is not in the table. */
    return cause < sizeof causes && causes[cause] != 0 ? (redlock_voted)causes[cause] : REDLOCK_VOTED_OTHER;
}

/* The arguments are those of docs/telemetry.md. */
static void probe(const redlock_telemetry_event *event) {
    const char *resource = event->resource;
    const uint64_t id = event->id, attempts = event->attempts;
    const int64_t elapsed_us = event->elapsed_us, validity_ms = event->validity_ms;
    const int code = event->code, automatic = event->automatic, mode = (int)event->mode;
    switch (event->kind) {
    case REDLOCK_TELEMETRY_STARTED:
        REDLOCK_PROBE(3, started, id, resource, mode);
        break;
    case REDLOCK_TELEMETRY_DENIED:
        REDLOCK_PROBE(5, denied, id, resource, code, attempts, elapsed_us);
        break;
    case REDLOCK_TELEMETRY_QUEUED:
        REDLOCK_PROBE(4, queued, id, resource, attempts, elapsed_us);
        break;
    case REDLOCK_TELEMETRY_ACQUIRED:
        REDLOCK_PROBE(5, acquired, id, resource, attempts, elapsed_us, validity_ms);
        break;
    case REDLOCK_TELEMETRY_FAILED:
        REDLOCK_PROBE(5, failed, id, resource, code, attempts, elapsed_us);
        break;
    case REDLOCK_TELEMETRY_ADOPTED:
        REDLOCK_PROBE(3, adopted, id, resource, mode);
        break;
    case REDLOCK_TELEMETRY_EXTENDED:
        REDLOCK_PROBE(6, extended, id, resource, code, automatic, elapsed_us, validity_ms);
        break;
    case REDLOCK_TELEMETRY_LOST:
        REDLOCK_PROBE(4, lost, id, resource, event->reason, elapsed_us);
        break;
    case REDLOCK_TELEMETRY_RELEASED:
        REDLOCK_PROBE(4, released, id, resource, code, elapsed_us);
        break;
    case REDLOCK_TELEMETRY_FORGOTTEN:
        REDLOCK_PROBE(3, forgotten, id, resource, elapsed_us);
        break;
    case REDLOCK_TELEMETRY_NODE_UP:
        REDLOCK_PROBE(2, node_up, event->node_index, event->node);
        break;
    case REDLOCK_TELEMETRY_NODE_DOWN:
        REDLOCK_PROBE(3, node_down, event->node_index, event->node, event->reason);
        break;
    case REDLOCK_TELEMETRY_EXPIRING:
        REDLOCK_PROBE(3, expiring, id, resource, validity_ms);
        break;
    }
    (void)resource, (void)id, (void)attempts, (void)elapsed_us, (void)validity_ms, (void)code, (void)automatic,
        (void)mode;
}

static void tell(const struct redlock_group *group, const redlock_telemetry_event *event) {
    if (group->on_event) {
        group->on_event(event, group->event_data);
    }
    probe(event);
}

__attribute__((noinline, cold)) static void tell_of(const struct redlock_lease *lease, redlock_telemetry_event event) {
    event.size = sizeof event;
    event.id = (uintptr_t)lease;
    event.trace = redlock_handle_trace(lease);
    event.resource = redlock_handle_resource(lease);
    event.node = "";
    event.reason = event.reason ? event.reason : "";
    event.attempts = lease->core.attempts;
    event.mode = lease->core.shared ? REDLOCK_SHARED : REDLOCK_EXCLUSIVE;
    tell(lease->group, &event);
}

void redlock_tell_event(const struct redlock_lease *lease, redlock_telemetry_kind kind, int code, int64_t elapsed_ns) {
    tell_of(lease, (redlock_telemetry_event){.kind = kind, .code = code, .elapsed_us = elapsed_ns / 1000});
}

static int64_t validity_ms(const struct redlock_lease *lease, int64_t now_ns) {
    const int64_t until_ns = redlock_lease_held_until_ns(&lease->core);
    return until_ns ? redlock_validity_ms(until_ns, now_ns) : 0;
}

static void acquired(struct redlock_lease *lease) {
    redlock_histogram_add(&lease->group->telemetry.acquire, lease->span_ns);
    if (REDLOCK_TELL_WANTED(lease->group, acquired)) {
        tell_of(lease, (redlock_telemetry_event){.kind = REDLOCK_TELEMETRY_ACQUIRED,
                                                 .elapsed_us = lease->span_ns / 1000,
                                                 .validity_ms = validity_ms(lease, lease->core.begun_ns),
                                                 .fence = lease->core.fence.token});
    }
    lease->span_ns = 0; /* it may be lost already */
}

void redlock_tell_acquire_ended(struct redlock_lease *lease) {
    if (lease->waited) {
        redlock_histogram_add(&lease->group->telemetry.wait, lease->span_ns);
    }
    if (lease->acquired_code == REDLOCK_OK) {
        acquired(lease);
    } else {
        REDLOCK_TELL(lease, failed, FAILED, lease->acquired_code, lease->span_ns);
    }
}

void redlock_tell_adopted(struct redlock_lease *lease) {
    REDLOCK_TELL(lease, adopted, ADOPTED, REDLOCK_OK, 0);
}

void redlock_tell_queued(struct redlock_lease *lease) {
    assert(lease->core.state == REDLOCK_LEASE_QUEUED);
    lease->waited = true;
    /* It asks for its place now. */
    REDLOCK_TELL(lease, queued, QUEUED, REDLOCK_OK, lease->core.start_ns - lease->span_ns);
}

static void extended(const struct redlock_lease *lease, const struct redlock_actions *actions, int64_t now_ns) {
    lease->group->statistics.extends_failed += actions->round_code != REDLOCK_OK;
    if (redlock_handle_has_span(lease) && REDLOCK_TELL_WANTED(lease->group, extended)) {
        char votes[TEXT_SIZE] = "";
        if (actions->round_code != REDLOCK_OK) {
            redlock_handle_round_text(lease, actions->round_code, votes, sizeof votes);
        }
        tell_of(lease, (redlock_telemetry_event){.kind = REDLOCK_TELEMETRY_EXTENDED,
                                                 .code = actions->round_code,
                                                 .reason = votes,
                                                 .automatic = !actions->extended,
                                                 .elapsed_us = (now_ns - lease->core.start_ns) / 1000,
                                                 .validity_ms = validity_ms(lease, now_ns)});
    }
}

void redlock_tell_round_over(struct redlock_lease *lease, const struct redlock_actions *actions, int64_t now_ns) {
    if (lease->core.operation == REDLOCK_OP_EXTEND) {
        extended(lease, actions, now_ns);
        return;
    }
    lease->waited = true;
    REDLOCK_TELL(lease, denied, DENIED, actions->round_code, now_ns - lease->span_ns);
}

void redlock_tell_renewed(struct redlock_lease *lease, int64_t planned_ns, int64_t now_ns) {
    redlock_histogram_add(&lease->group->telemetry.renewal_late, now_ns - planned_ns);
}

void redlock_tell_expiring(const struct redlock_lease *lease, int64_t remaining_ms) {
    assert(remaining_ms > 0);
    if (redlock_handle_has_span(lease) && REDLOCK_TELL_WANTED(lease->group, expiring)) {
        const int64_t held_ns = redlock_group_now_ns(lease->group) - lease->core.begun_ns;
        tell_of(lease, (redlock_telemetry_event){.kind = REDLOCK_TELEMETRY_EXPIRING,
                                                 .elapsed_us = held_ns / 1000,
                                                 .validity_ms = remaining_ms});
    }
}

void redlock_tell_lost(const struct redlock_lease *lease) {
    char loss[TEXT_SIZE];
    if (redlock_handle_has_span(lease) && REDLOCK_TELL_WANTED(lease->group, lost)) {
        redlock_handle_loss_text(lease, loss, sizeof loss);
        tell_of(lease, (redlock_telemetry_event){.kind = REDLOCK_TELEMETRY_LOST,
                                                 .code = REDLOCK_ERR_LOST,
                                                 .reason = loss,
                                                 .elapsed_us = lease->span_ns / 1000});
    }
}

void redlock_tell_released(struct redlock_lease *lease) {
    if (redlock_handle_has_span(lease)) {
        REDLOCK_TELL(lease, released, RELEASED, lease->released_code, lease->span_ns);
    }
}

static void tell_of_node(const struct redlock_group *group, unsigned node, redlock_telemetry_kind kind,
                         const char *reason) {
    tell(group, &(redlock_telemetry_event){.size = sizeof(redlock_telemetry_event),
                                           .kind = kind,
                                           .resource = "",
                                           .node = group->node_names[node],
                                           .node_index = node,
                                           .reason = reason});
}

void redlock_tell_node(struct redlock_group *group, unsigned node, bool ready) {
    assert(node < group->node_count);
    group->telemetry.node_ups[node] += ready;
    group->telemetry.node_downs[node] += !ready;
    if (ready && REDLOCK_TELL_WANTED(group, node_up)) {
        tell_of_node(group, node, REDLOCK_TELEMETRY_NODE_UP, "");
    } else if (!ready && REDLOCK_TELL_WANTED(group, node_down)) {
        tell_of_node(group, node, REDLOCK_TELEMETRY_NODE_DOWN,
                     redlock_text_string(group->env.refusal(group->env.ctx, node)));
    }
}

int redlock_group_telemetry(struct redlock_group *group, redlock_telemetry *telemetry) {
    const int code = redlock_check_struct(&group->failure, "telemetry", telemetry);
    if (code != REDLOCK_OK) {
        return redlock_group_refuse(group, code);
    }
    redlock_fill_struct(telemetry, &group->telemetry, sizeof group->telemetry);
    return REDLOCK_OK;
}

#define NAME_SIZE 128
#define LOSS_SIZE 320
#define RANK_SIZE 32

static bool is_logged(const struct redlock_lease *lease, redlock_log_level level) {
    return level <= lease->group->log_level;
}

#define LOG(lease, level, ...) (lease)->group->env.log((lease)->group->env.ctx, REDLOCK_LOG_##level, __VA_ARGS__)

const char *redlock_tell_operation_name(enum redlock_operation operation) {
    switch (operation) {
    case REDLOCK_OP_ACQUIRE:
        return "acquire";
    case REDLOCK_OP_EXTEND:
        return "extend";
    case REDLOCK_OP_RELEASE:
        return "release";
    case REDLOCK_OP_INSPECT:
        return "inspect";
    case REDLOCK_OP_FENCE:
        return "fence";
    case REDLOCK_OP_HEAL:
        return "heal";
    case REDLOCK_OP_TIME:
        return "time";
    case REDLOCK_OP_WAIT:
        return "wait";
    case REDLOCK_OP_LIST:
        return "list";
    case REDLOCK_OP_NONE:
        break;
    }
    return "";
}

/* Whether the node's vote on this acquire differs from its last one: its kind, its text, or for a
 * waiter the holder or the rank. Hashes that are alike by chance only leave out a line. */
static bool is_new(struct redlock_lease *lease, struct redlock_result_vote *detail,
                   const struct redlock_grants_view *view) {
    const char *text = redlock_text_string(detail->text);
    const uint64_t parts[] = {redlock_hash(text, strlen(text)), view->holder_id, view->rank, detail->kind};
    const uint16_t logged = (uint16_t)(redlock_hash((const char *)parts, sizeof parts) >> 48 | 1);
    if (detail->logged == logged) {
        return false;
    }
    detail->logged = logged;
    lease->try_logged = false;
    return true;
}

/* Not inlined: every vote passes here, and almost none is logged. */
__attribute__((noinline, cold)) static void log_vote(struct redlock_lease *lease, unsigned node,
                                                     const struct redlock_answer *answer) {
    char name[NAME_SIZE], rank[RANK_SIZE] = "";
    struct redlock_result_vote *detail = &lease->details[node];
    struct redlock_grants_view view = {.rank = 0};
    const enum redlock_operation operation = lease->core.operation;
    if (operation == REDLOCK_OP_WAIT && detail->kind == REDLOCK_VOTE_DENIED) {
        view = redlock_handle_view(lease, answer);
        (void)snprintf(rank, sizeof rank, ", %lu before us", (unsigned long)view.rank);
    }
    if ((operation == REDLOCK_OP_WAIT || operation == REDLOCK_OP_ACQUIRE) && !is_new(lease, detail, &view)) {
        return;
    }
    const char *text = redlock_text_string(detail->text);
    redlock_text_printable(redlock_handle_resource(lease), name, sizeof name);
    LOG(lease, DEBUG, "%s '%s': node %s: %s after %ld us%s%s%s", redlock_tell_operation_name(operation), name,
        lease->group->node_names[node], redlock_vote_name((redlock_vote_kind)detail->kind), (long)detail->latency_us,
        text[0] ? ": " : "", text, rank);
}

void redlock_tell_log_vote(struct redlock_lease *lease, unsigned node, const struct redlock_answer *answer) {
    if (is_logged(lease, REDLOCK_LOG_DEBUG)) {
        log_vote(lease, node, answer);
    }
}

static void log_attempt(struct redlock_lease *lease, const char *name, int64_t now_ns) {
    if (lease->try_logged) {
        return;
    }
    lease->try_logged = true;
    const struct redlock_round *votes = &lease->core.votes;
    LOG(lease, DEBUG, "acquire '%s': attempt %u is lost: %u granted, %u denied, %u failed, %u unknown; next in %ld ms",
        name, lease->core.attempts, redlock_nodes_count(votes->granted), redlock_nodes_count(votes->denied),
        redlock_nodes_count(votes->failed), redlock_nodes_count(votes->unknown),
        (long)redlock_validity_ms(lease->core.next_try_ns, now_ns));
}

void redlock_tell_log_push(const struct redlock_lease *lease, unsigned node) {
    char name[NAME_SIZE];
    if (is_logged(lease, REDLOCK_LOG_DEBUG)) {
        redlock_text_printable(redlock_handle_resource(lease), name, sizeof name);
        LOG(lease, DEBUG, "wait '%s': node %s handed it over", name, lease->group->node_names[node]);
    }
}

static void log_wait(struct redlock_lease *lease, const char *name, enum redlock_grants_did did) {
    switch (did) {
    case REDLOCK_GRANTS_ENTERED:
        LOG(lease, DEBUG, "acquire '%s': takes a place in the queues as attempt %u", name, lease->core.attempts);
        break;
    case REDLOCK_GRANTS_LOOKED:
        LOG(lease, DEBUG, "wait '%s': %u nodes granted it, %u are needed: asks why", name,
            redlock_nodes_count(lease->core.grants->granted), lease->core.votes.quorum);
        break;
    case REDLOCK_GRANTS_YIELDED:
        LOG(lease, DEBUG, "wait '%s': gives back what it got, and waits on as attempt %u", name, lease->core.attempts);
        break;
    case REDLOCK_GRANTS_POLLED:
        if (!lease->try_logged) {
            LOG(lease, DEBUG, "wait '%s': first in line, asks whether it is free", name);
        }
        lease->try_logged = true;
        break;
    case REDLOCK_GRANTS_NOTHING:
    case REDLOCK_GRANTS_REFRESHED:
        break;
    }
}

__attribute__((noinline)) static void log_step(struct redlock_lease *lease, enum redlock_lease_state before,
                                               const struct redlock_actions *actions, int64_t now_ns) {
    char name[NAME_SIZE];
    const enum redlock_lease_state after = lease->core.state;
    redlock_text_printable(redlock_handle_resource(lease), name, sizeof name);
    if (actions->lost) {
        char loss[LOSS_SIZE];
        redlock_handle_loss_text(lease, loss, sizeof loss);
        LOG(lease, ERROR, "the lease of '%s' is lost: %s", name, loss);
    } else if (after == REDLOCK_LEASE_QUEUED) {
        log_wait(lease, name, actions->did);
    } else if (before == REDLOCK_LEASE_ACQUIRING && after == REDLOCK_LEASE_RETRYING) {
        log_attempt(lease, name, now_ns);
    } else if (actions->acquired) {
        LOG(lease, DEBUG, "acquire '%s': %s at attempt %u, valid for %ld ms", name,
            redlock_error_name(actions->acquired_code), lease->core.attempts,
            (long)redlock_validity_ms(redlock_lease_held_until_ns(&lease->core), now_ns));
    } else if (before == REDLOCK_LEASE_EXTENDING && after == REDLOCK_LEASE_HELD) {
        LOG(lease, DEBUG, "extend '%s': %s, valid for %ld ms", name,
            redlock_round_outcome(&lease->core.votes) == REDLOCK_ROUND_WON ? "OK" : "NO_QUORUM",
            (long)redlock_validity_ms(redlock_lease_held_until_ns(&lease->core), now_ns));
    } else if (actions->released) {
        LOG(lease, DEBUG, "release '%s': %s", name, redlock_error_name(actions->released_code));
    }
}

void redlock_tell_log_step(struct redlock_lease *lease, enum redlock_lease_state before,
                           const struct redlock_actions *actions, int64_t now_ns) {
    const bool changed = lease->core.state != before || actions->did != REDLOCK_GRANTS_NOTHING;
    if (changed && (actions->lost || is_logged(lease, REDLOCK_LOG_DEBUG))) {
        log_step(lease, before, actions, now_ns);
    }
}
