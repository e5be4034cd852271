/* The log messages about a lease. Losses are errors; attempts, votes and results are at debug
 * level. */
#include "group/journal.h"

#include "core/validity.h"

#define NAME_SIZE 128
#define LOSS_SIZE 320

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
    case REDLOCK_OP_NONE:
        break;
    }
    return "";
}

void redlock_journal_vote(const struct redlock_lease *lease, unsigned node) {
    char name[NAME_SIZE];
    if (!is_logged(lease, REDLOCK_LOG_DEBUG)) {
        return;
    }
    const struct redlock_detail *detail = &lease->details[node];
    const char *text = redlock_text_string(detail->text);
    redlock_text_printable(redlock_lease_resource(lease), name, sizeof name);
    LOG(lease, DEBUG, "%s '%s': node %s: %s after %ld us%s%s", redlock_journal_operation(lease->core.operation), name,
        lease->group->node_names[node], redlock_vote_name((redlock_vote_kind)detail->kind), (long)detail->latency_us,
        text[0] ? ": " : "", text);
}

static void log_attempt(const struct redlock_lease *lease, const char *name, int64_t now_ns) {
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

static void log_wait(const struct redlock_lease *lease, const char *name, enum redlock_queue_step step) {
    switch (step) {
    case REDLOCK_QUEUE_ENTERED:
        LOG(lease, DEBUG, "acquire '%s': takes a place in the queues as attempt %u", name, lease->core.attempts);
        break;
    case REDLOCK_QUEUE_LOOKED:
        LOG(lease, DEBUG, "wait '%s': %u nodes granted it, %u are needed: asks why", name,
            redlock_nodes_count(lease->waiting->queue->granted), lease->core.votes.quorum);
        break;
    case REDLOCK_QUEUE_YIELDED:
        LOG(lease, DEBUG, "wait '%s': gives back what it got, and waits on as attempt %u", name, lease->core.attempts);
        break;
    case REDLOCK_QUEUE_POLLED:
        LOG(lease, DEBUG, "wait '%s': first in line, asks whether it is free", name);
        break;
    case REDLOCK_QUEUE_NOTHING:
    case REDLOCK_QUEUE_REFRESHED:
        break;
    }
}

void redlock_journal_step(const struct redlock_lease *lease, enum redlock_lease_state before,
                          const struct redlock_actions *actions, int64_t now_ns) {
    char name[NAME_SIZE];
    const enum redlock_lease_state after = lease->core.state;
    if ((after == before && actions->step == REDLOCK_QUEUE_NOTHING) ||
        (!actions->lost && !is_logged(lease, REDLOCK_LOG_DEBUG))) {
        return;
    }
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
