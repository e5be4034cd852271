/* A second try beside a connection that is silent. */
#include "node/spare.h"

#include <string.h>

#include "core/time.h"
#include "node/phase.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/subscription.h"

static bool may_need_one(const struct redlock_node *node) {
    return redlock_node_is_up(node) && node->dial.link.state == REDLOCK_LINK_OFF &&
           node->connection.inflight.expired > 0;
}

static int64_t begin_ns(const struct redlock_node *node) {
    const int64_t answer_ns = redlock_node_is_far(node) ? 2 * node->shortest_ns : node->timeout_ns;
    const int64_t silent_ns = redlock_after_ns(node->heard_ns, answer_ns);
    return silent_ns > node->dial.again_ns ? silent_ns : node->dial.again_ns;
}

bool redlock_spare_is_due(const struct redlock_node *node, int64_t now_ns) {
    return may_need_one(node) && now_ns >= begin_ns(node);
}

void redlock_spare_look(struct redlock_node *node, int64_t now_ns) {
    if (may_need_one(node)) {
        const int64_t when_ns = begin_ns(node) > now_ns ? begin_ns(node) : now_ns;
        node->dial.begun_ns = when_ns;
        redlock_link_set(&node->dial.link, REDLOCK_LINK_OFF, when_ns);
    }
}

static void end(struct redlock_node *node) {
    struct redlock_dial *dial = &node->dial;
    const int64_t now_ns = redlock_node_now_ns(node);
    redlock_link_end(&dial->link);
    redlock_credentials_clear(&node->rotation.spare);
    dial->again_ns = now_ns + redlock_link_delay_ns(now_ns, &node->jitter, &dial->failures, dial->again_ns);
}

static void flush_kept(struct redlock_node *node) {
    node->reactor.flush_soon(node->reactor.ctx, &node->connection.watch);
}

void redlock_spare_is_needless(struct redlock_node *node) {
    node->timeouts = 0;
    if (redlock_node_has_spare(node)) {
        end(node);
    }
    flush_kept(node);
    redlock_spare_look(node, node->heard_ns); /* there may be more overdue */
}

void redlock_spare_is_not_due(struct redlock_node *node, int64_t now_ns) {
    flush_kept(node);
    redlock_spare_look(node, now_ns);
}

void redlock_spare_in_vain(struct redlock_node *node, const char *why) {
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_DEBUG, "node %s: the second connection failed: %s",
                      node->address.name, why);
    end(node);
    flush_kept(node);
    redlock_spare_look(node, redlock_node_now_ns(node));
}

bool redlock_spare_replaces(struct redlock_node *node) {
    const struct redlock_handshake *handshake = &node->dial.handshake;
    /* The answers may be here already: the two sockets are read in any order. */
    node->connection.watch.on_io(&node->connection.watch, REDLOCK_READABLE);
    if (!redlock_node_has_spare(node)) {
        return false;
    }
    const long long silent_ms = (redlock_node_now_ns(node) - node->heard_ns) / REDLOCK_NS_PER_MS;
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING,
                      "node %s: nothing was heard on its connection for %lld ms, and a new one answers: the old one "
                      "is given up",
                      node->address.name, silent_ms);
    node->resumes = handshake->info.run_id[0] != '\0' && strcmp(handshake->info.run_id, node->known_run_id) == 0;
    redlock_connection_reset(&node->connection);
    redlock_phase_set(node, REDLOCK_PHASE_INTRODUCING,
                      redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the connection was silent and is replaced"));
    return true;
}

/* Such an AUTH goes to the new connection with the other requests. */
static bool keeps_auth(const struct redlock_node *node) {
    const struct redlock_connection *connection = &node->connection;
    const struct redlock_inflight *inflight = &connection->inflight;
    for (size_t i = inflight->count; node->resumes && i-- > 0;) {
        const struct redlock_inflight_entry *entry = redlock_inflight_at(inflight, i);
        if (entry->owner == &node->rotation && !redlock_connection_has_written(connection, entry)) {
            return true;
        }
    }
    return false;
}

void redlock_spare_replaced(struct redlock_node *node) {
    if (!keeps_auth(node)) {
        redlock_rotation_ends(node);
    }
    redlock_subscription_end(&node->subscription, node->why);
    if (node->resumes) {
        redlock_requests_end_written(node);
    } else {
        redlock_requests_end(node);
        node->callbacks.ready_changed(node->callbacks.ctx, node->index, false);
    }
}

bool redlock_spare_is_fresh(struct redlock_node *node, int64_t now_ns) {
    const int64_t end_ns = node->dial.begun_ns + node->timeout_ns;
    if ((!redlock_node_has_spare(node) && !redlock_spare_is_due(node, now_ns)) || now_ns >= end_ns) {
        return false;
    }
    redlock_node_rearm(node, end_ns);
    return true;
}

void redlock_spare_or_node_fails(struct redlock_node *node, struct redlock_text *why) {
    if (redlock_node_has_spare(node)) {
        redlock_spare_in_vain(node, redlock_text_string(why));
        redlock_text_drop(why);
    } else {
        redlock_phase_ended(node, why);
    }
}
