/* The log messages about a lease. Losses are errors; attempts, votes and results are at debug
 * level. */
#include "group/journal.h"

#include <stdio.h>
#include <string.h>

#include "core/validity.h"
#include "group/waiting.h"

#define NAME_SIZE 128
#define LOSS_SIZE 320
#define RANK_SIZE 32

static bool is_logged(const struct redlock_lease *lease, redlock_log_level level) {
    return level <= lease->group->log_level;
}

#define LOG(lease, level, ...) (lease)->group->env.log((lease)->group->env.ctx, REDLOCK_LOG_##level, __VA_ARGS__)

const char *redlock_journal_operation(enum redlock_operation operation) {
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
static bool is_news(struct redlock_lease *lease, struct redlock_detail *detail, const struct redlock_queue_view *view) {
    const char *text = redlock_text_string(detail->text);
    const uint64_t parts[] = {redlock_line_hash(text, strlen(text)), view->holder_id, view->rank, detail->kind};
    const uint16_t logged = (uint16_t)(redlock_line_hash((const char *)parts, sizeof parts) >> 48 | 1);
    if (detail->logged == logged) {
        return false;
    }
    detail->logged = logged;
    lease->try_logged = false;
    return true;
}

/* Not inlined: every vote passes here, and almost none is logged. */
__attribute__((noinline)) static void log_vote(struct redlock_lease *lease, unsigned node,
                                               const struct redlock_answer *answer) {
    char name[NAME_SIZE], rank[RANK_SIZE] = "";
    struct redlock_detail *detail = &lease->details[node];
    struct redlock_queue_view view = {.rank = 0};
    const enum redlock_operation operation = lease->core.operation;
    if (operation == REDLOCK_OP_WAIT && detail->kind == REDLOCK_VOTE_DENIED) {
        view = redlock_waiting_view(lease, answer);
        (void)snprintf(rank, sizeof rank, ", %lu before us", (unsigned long)view.rank);
    }
    if ((operation == REDLOCK_OP_WAIT || operation == REDLOCK_OP_ACQUIRE) && !is_news(lease, detail, &view)) {
        return;
    }
    const char *text = redlock_text_string(detail->text);
    redlock_text_printable(redlock_lease_resource(lease), name, sizeof name);
    LOG(lease, DEBUG, "%s '%s': node %s: %s after %ld us%s%s%s", redlock_journal_operation(operation), name,
        lease->group->node_names[node], redlock_vote_name((redlock_vote_kind)detail->kind), (long)detail->latency_us,
        text[0] ? ": " : "", text, rank);
}

void redlock_journal_vote(struct redlock_lease *lease, unsigned node, const struct redlock_answer *answer) {
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

void redlock_journal_push(const struct redlock_lease *lease, unsigned node) {
    char name[NAME_SIZE];
    if (is_logged(lease, REDLOCK_LOG_DEBUG)) {
        redlock_text_printable(redlock_lease_resource(lease), name, sizeof name);
        LOG(lease, DEBUG, "wait '%s': node %s handed it over", name, lease->group->node_names[node]);
    }
}

static void log_wait(struct redlock_lease *lease, const char *name, enum redlock_queue_step step) {
    switch (step) {
    case REDLOCK_QUEUE_ENTERED:
        LOG(lease, DEBUG, "acquire '%s': takes a place in the queues as attempt %u", name, lease->core.attempts);
        break;
    case REDLOCK_QUEUE_LOOKED:
        LOG(lease, DEBUG, "wait '%s': %u nodes granted it, %u are needed: asks why", name,
            redlock_nodes_count(lease->core.queue->granted), lease->core.votes.quorum);
        break;
    case REDLOCK_QUEUE_YIELDED:
        LOG(lease, DEBUG, "wait '%s': gives back what it got, and waits on as attempt %u", name, lease->core.attempts);
        break;
    case REDLOCK_QUEUE_POLLED:
        if (!lease->try_logged) {
            LOG(lease, DEBUG, "wait '%s': first in line, asks whether it is free", name);
        }
        lease->try_logged = true;
        break;
    case REDLOCK_QUEUE_NOTHING:
    case REDLOCK_QUEUE_REFRESHED:
        break;
    }
}

__attribute__((noinline)) static void log_step(struct redlock_lease *lease, enum redlock_lease_state before,
                                               const struct redlock_actions *actions, int64_t now_ns) {
    char name[NAME_SIZE];
    const enum redlock_lease_state after = lease->core.state;
    redlock_text_printable(redlock_lease_resource(lease), name, sizeof name);
    if (actions->lost) {
        char loss[LOSS_SIZE];
        redlock_lease_loss_text(lease, loss, sizeof loss);
        LOG(lease, ERROR, "the lease of '%s' is lost: %s", name, loss);
    } else if (after == REDLOCK_LEASE_QUEUED) {
        log_wait(lease, name, actions->step);
    } else if (before == REDLOCK_LEASE_ACQUIRING && after == REDLOCK_LEASE_WAITING) {
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

void redlock_journal_step(struct redlock_lease *lease, enum redlock_lease_state before,
                          const struct redlock_actions *actions, int64_t now_ns) {
    const bool changed = lease->core.state != before || actions->step != REDLOCK_QUEUE_NOTHING;
    if (changed && (actions->lost || is_logged(lease, REDLOCK_LOG_DEBUG))) {
        log_step(lease, before, actions, now_ns);
    }
}
