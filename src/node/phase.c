/* A node's changes of state. */
#include "node/phase.h"

#include <string.h>

#include "core/time.h"
#include "node/failure.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/subscription.h"

struct redlock_text *redlock_node_twice_text(const char *rival) {
    return redlock_text_new(REDLOCK_CAUSE_SAME_SERVER, "the same server as %s: each node must be a server of its own",
                            rival);
}

void redlock_node_set_phase(struct redlock_node *node, enum redlock_node_phase phase, struct redlock_text *why) {
    redlock_text_drop(node->why);
    redlock_text_drop(node->refusal);
    node->why = why;
    node->refusal = NULL;
    node->phase = phase;
    node->succeeds = false;
    if (!redlock_node_is_up(node)) {
        node->form.deleting = REDLOCK_DELETING_SCRIPT; /* the next server may have no command */
    }
}

void redlock_dial_end(struct redlock_node *node) {
    redlock_connection_reset(&node->dial.connection);
    node->dial.phase = REDLOCK_DIAL_OFF;
    node->reactor.timer_at(node->reactor.ctx, &node->dial.connection.watch, REDLOCK_NEVER_NS);
}

/* Enters WAITING or UNUSABLE. Logs the same reason only once at `level`, then as DEBUG. */
static void end_try(struct redlock_node *node, enum redlock_node_phase phase, struct redlock_text *why,
                    redlock_log_level level, int64_t delay_ns) {
    int64_t now_ns = redlock_node_now_ns(node);
    bool news = strcmp(redlock_text_string(why), redlock_text_string(node->why)) != 0;
    redlock_connection_reset(&node->connection);
    redlock_dial_end(node);
    redlock_rotation_ends(node);
    redlock_credentials_clear(&node->rotation.spare);
    node->resumes = false;
    node->retry_ns = now_ns + delay_ns;
    redlock_node_set_phase(node, phase, why);
    node->reactor.log(node->reactor.ctx, news ? level : REDLOCK_LOG_DEBUG, "node %s: %s; next try in about %lld ms",
                      node->address.name, redlock_text_string(why), (long long)(delay_ns / REDLOCK_NS_PER_MS));
    node->first_try_done = true;
    redlock_requests_end(node);
    redlock_subscription_end(&node->subscription);
    node->listener.ready_changed(node->listener.ctx, node->index, false);
    redlock_node_rearm(node, node->retry_ns);
}

void redlock_node_lost(struct redlock_node *node, struct redlock_text *why) {
    const int64_t up_ns = redlock_node_is_up(node) ? node->up_ns : REDLOCK_NEVER_NS;
    const int64_t delay_ns = redlock_node_delay_ns(node, &node->failures, up_ns);
    end_try(node, REDLOCK_PHASE_WAITING, why, REDLOCK_LOG_WARNING, delay_ns);
}

void redlock_node_ended(struct redlock_node *node, struct redlock_text *why) {
    if (redlock_text_cause(why) == REDLOCK_CAUSE_TLS) {
        redlock_node_unusable(node, why);
    } else {
        redlock_node_lost(node, why);
    }
}

void redlock_node_unusable(struct redlock_node *node, struct redlock_text *why) {
    /* Random too, so that the clients of a demoted node do not retry in step (R16). */
    unsigned failures = REDLOCK_NODE_FAILURES_MAX;
    const int64_t delay_ns = redlock_node_delay_ns(node, &failures, REDLOCK_NEVER_NS);
    end_try(node, REDLOCK_PHASE_UNUSABLE, why, REDLOCK_LOG_ERROR, delay_ns);
}
