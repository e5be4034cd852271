/* A node's changes of state. */
#include "node/phase.h"

#include <string.h>

#include "core/time.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/subscription.h"

struct redlock_text *redlock_phase_twice_text(const char *rival) {
    return redlock_text_new(REDLOCK_CAUSE_SAME_SERVER, "the same server as %s: each node must be a server of its own",
                            rival);
}

void redlock_phase_set(struct redlock_node *node, enum redlock_node_phase phase, struct redlock_text *why) {
    redlock_text_drop(node->why);
    redlock_text_drop(node->refusal);
    node->why = why;
    node->refusal = NULL;
    node->phase = phase;
    node->subscription.is_ready = phase == REDLOCK_PHASE_READY;
    node->succeeds = false;
    if (!redlock_node_is_up(node)) {
        node->form.deleting = REDLOCK_DELETING_SCRIPT; /* the next server may have no command */
    }
}

/* Enters WAITING or UNUSABLE. Logs the same reason as DEBUG the next time. */
static void end_try(struct redlock_node *node, enum redlock_node_phase phase, struct redlock_text *why) {
    const int64_t now_ns = redlock_node_now_ns(node);
    const bool unusable = phase == REDLOCK_PHASE_UNUSABLE;
    const bool is_new = strcmp(redlock_text_string(why), redlock_text_string(node->why)) != 0;
    const redlock_log_level level = unusable ? REDLOCK_LOG_ERROR : REDLOCK_LOG_WARNING;
    /* Random too, so that the clients of a demoted node do not retry in step (R16). */
    unsigned most = REDLOCK_LINK_FAILURES_MAX;
    const int64_t delay_ns =
        redlock_link_delay_ns(now_ns, &node->jitter, unusable ? &most : &node->failures,
                              !unusable && redlock_node_is_up(node) ? node->up_ns : REDLOCK_NEVER_NS);
    redlock_connection_reset(&node->connection);
    redlock_link_end(&node->dial.link);
    redlock_rotation_ends(node);
    redlock_credentials_clear(&node->rotation.spare);
    node->resumes = false;
    node->retry_ns = now_ns + delay_ns;
    redlock_phase_set(node, phase, why);
    node->reactor.log(node->reactor.ctx, is_new ? level : REDLOCK_LOG_DEBUG, "node %s: %s; next try in about %lld ms",
                      node->address.name, redlock_text_string(why), (long long)(delay_ns / REDLOCK_NS_PER_MS));
    node->first_try_done = true;
    redlock_requests_end(node);
    redlock_subscription_end(&node->subscription, node->why);
    node->callbacks.ready_changed(node->callbacks.ctx, node->index, false);
    redlock_node_rearm(node, node->retry_ns);
}

void redlock_phase_lost(struct redlock_node *node, struct redlock_text *why) {
    end_try(node, REDLOCK_PHASE_WAITING, why);
}

void redlock_phase_unusable(struct redlock_node *node, struct redlock_text *why) {
    end_try(node, REDLOCK_PHASE_UNUSABLE, why);
}

void redlock_phase_ended(struct redlock_node *node, struct redlock_text *why) {
    end_try(node, redlock_text_cause(why) == REDLOCK_CAUSE_TLS ? REDLOCK_PHASE_UNUSABLE : REDLOCK_PHASE_WAITING, why);
}
