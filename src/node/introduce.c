/* The second part of a handshake: from a server that is known to a node that is READY. */
#include "node/introduce.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "core/time.h"
#include "node/failure.h"
#include "node/naming.h"
#include "node/phase.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/spare.h"
#include "node/subscription.h"

static void tell_greeting(const struct redlock_node *node) {
    const struct redlock_greeting greeting = {
        .run_id = node->info.run_id, .uptime_s = node->info.uptime_s, .clock = node->dial.clock};
    node->listener.greeted(node->listener.ctx, node->index, &greeting);
}

/* The first reply of the second part of the handshake: the others may have taken the server's
 * time. */
static void measure(struct redlock_node *node) {
    if (node->hello_ns != 0) {
        node->round_trip_ns = redlock_node_now_ns(node) - node->hello_ns;
        node->shortest_ns = node->round_trip_ns < node->shortest_ns ? node->round_trip_ns : node->shortest_ns;
        node->hello_ns = 0;
    }
}

/* A node timeout with room for a node that is slow now and then. */
static long long enough_ms(int64_t trip_ms) {
    const int64_t ms = (2 * trip_ms + 49) / 50 * 50;
    return ms < REDLOCK_TIMEOUT_MS_MAX ? ms : REDLOCK_TIMEOUT_MS_MAX;
}

/* Such a node answers, but no request is answered in time, so no lock can be taken there. */
static void say_far(struct redlock_node *node) {
    const int64_t trip_ms = (node->shortest_ns + REDLOCK_NS_PER_MS - 1) / REDLOCK_NS_PER_MS;
    redlock_text_drop(node->far);
    node->far = redlock_text_new(REDLOCK_CAUSE_TIMEOUT,
                                 "no answer within %lld ms, and a round trip takes %lld ms at least: node_timeout_ms "
                                 "must be longer, such as %lld",
                                 (long long)node->options.node_timeout_ms, (long long)trip_ms, enough_ms(trip_ms));
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", node->address.name,
                      redlock_text_string(node->far));
}

static void ready(struct redlock_node *node) {
    node->up_ns = redlock_node_now_ns(node);
    node->heard_ns = node->up_ns;
    node->scripts_ns = node->up_ns;
    node->timeouts = 0;
    node->connects++;
    node->first_try_done = true;
    node->form.deleting = redlock_info_deleting(&node->info);
    /* No warning: a program that never waits does not need it. */
    node->no_queue[0] = '\0';
    if (node->handshake.wanted[0] != '\0') {
        (void)snprintf(node->no_queue, sizeof node->no_queue, "waiting in order needs %s", node->handshake.wanted);
    }
    node->known_client_id = node->handshake.client_id;
    memcpy(node->known_run_id, node->info.run_id, sizeof node->known_run_id);
    redlock_outbox_clear(&node->connection.hello);
    redlock_naming_begin(node);
    redlock_node_set_phase(node, REDLOCK_PHASE_READY, NULL);
    redlock_rotation_ready(node);
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO, "node %s is ready: %s%s%s", node->address.name,
                      node->info.version[0] == '\0' ? "unknown version" : node->info.version,
                      node->address.tls ? ", " : "",
                      node->address.tls ? redlock_tls_version_name(node->connection.tls) : "");
    if (node->warning[0] != '\0') {
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", node->address.name, node->warning);
    }
    if (redlock_node_is_far(node)) {
        say_far(node);
    }
    redlock_requests_begin(node);
    node->resumes = false;
    if (redlock_node_is_far(node)) {
        redlock_requests_ping(node);
    }
    tell_greeting(node);
    redlock_subscription_begin(&node->subscription);
    node->listener.ready_changed(node->listener.ctx, node->index, true);
}

void redlock_introduce_compare(struct redlock_node *node) {
    const char *twin = node->handshake.twin;
    const char *server = node->info.run_id[0] != '\0' ? node->info.run_id : twin;
    const char *rival =
        server[0] == '\0' ? NULL : node->listener.same_server(node->listener.ctx, node->index, server, &node->succeeds);
    if (rival == NULL) {
        /* The marker has the mark of a node that has gone: this one is known by it from now on. */
        if (twin[0] != '\0') {
            memcpy(node->mark, twin, sizeof node->mark);
        }
        ready(node);
    } else if (node->succeeds) {
        redlock_node_rearm(node, redlock_node_now_ns(node));
    } else {
        redlock_node_unusable(node, redlock_node_twice_text(rival));
    }
}

void redlock_introduce_end(struct redlock_node *node, const struct redlock_handshake *handshake,
                           enum redlock_handshake_state state) {
    if (state == REDLOCK_HANDSHAKE_NO_MEMORY) {
        redlock_spare_or_node_fails(node, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for the handshake"));
        return;
    }
    if (redlock_node_has_spare(node)) {
        if (handshake->cause == REDLOCK_CAUSE_AUTH) {
            redlock_rotation_spare_refused(node);
        }
        redlock_spare_in_vain(node, handshake->reason);
        return;
    }
    node->info = handshake->info;
    memcpy(node->warning, handshake->warning, sizeof node->warning);
    if (state == REDLOCK_HANDSHAKE_DONE) {
        redlock_introduce_compare(node);
    } else if (state == REDLOCK_HANDSHAKE_RETRY) {
        redlock_node_lost(node, redlock_text_new(handshake->cause, "%s", handshake->reason));
    } else if (handshake->cause == REDLOCK_CAUSE_AUTH && redlock_rotation_goes_back(node, handshake->reason)) {
        redlock_node_lost(
            node, redlock_text_new(REDLOCK_CAUSE_AUTH, "the new credentials are refused (%s)", handshake->reason));
    } else {
        redlock_node_unusable(node, redlock_text_new(handshake->cause, "%s", handshake->reason));
    }
}

void redlock_introduce_reply(struct redlock_node *node, const struct redlock_reply *reply) {
    if (node->handshake.step >= node->handshake.step_count) {
        redlock_node_lost(node, redlock_node_unasked_text());
        return;
    }
    measure(node);
    const enum redlock_handshake_state state =
        redlock_handshake_reply(&node->handshake, reply, &node->connection.hello);
    if (state != REDLOCK_HANDSHAKE_WAITING) {
        redlock_introduce_end(node, &node->handshake, state);
    } else if (redlock_outbox_size(&node->connection.hello) > 0) {
        node->hello_ns = redlock_node_now_ns(node);
        node->reactor.flush_soon(node->reactor.ctx, &node->connection.watch);
    }
}
