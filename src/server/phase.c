/* A server's changes of state. */
#include "server/phase.h"

#include <assert.h>
#include <string.h>

#include "core/time.h"
#include "server/requests.h"
#include "server/rotation.h"
#include "server/subscription.h"

struct redlock_text *redlock_phase_twice_text(const char *rival) {
    return redlock_text_new(REDLOCK_CAUSE_SAME_SERVER, "the same server as %s: each node must be a server of its own",
                            rival);
}

void redlock_phase_set(struct redlock_server *server, enum redlock_server_phase phase, struct redlock_text *why) {
    assert(phase != REDLOCK_PHASE_NEW && (phase != REDLOCK_PHASE_READY || why == NULL));
    redlock_text_drop(server->why);
    server->why = why;
    server->phase = phase;
    server->changes++;
    server->due_ns = REDLOCK_NEVER_NS;
    server->subscription.is_ready = phase == REDLOCK_PHASE_READY;
    server->succeeds = false;
    if (!redlock_server_is_up(server)) {
        server->form.deleting = REDLOCK_DELETING_SCRIPT; /* the next server may have no command */
        server->loaded = 0;
    }
}

/* Enters WAITING or UNUSABLE. Logs the same reason as DEBUG the next time. */
static void end_try(struct redlock_server *server, enum redlock_server_phase phase, struct redlock_text *why) {
    const int64_t now_ns = redlock_server_now_ns(server);
    const bool unusable = phase == REDLOCK_PHASE_UNUSABLE;
    const bool is_new = strcmp(redlock_text_string(why), redlock_text_string(server->why)) != 0;
    const redlock_log_level level = unusable ? REDLOCK_LOG_ERROR : REDLOCK_LOG_WARNING;
    /* Random too, so that the clients of a demoted server do not retry in step (R16). */
    unsigned most = REDLOCK_LINK_FAILURES_MAX;
    const int64_t delay_ns =
        redlock_link_delay_ns(now_ns, &server->jitter, unusable ? &most : &server->failures,
                              !unusable && redlock_server_is_up(server) ? server->up_ns : REDLOCK_NEVER_NS);
    redlock_connection_reset(&server->connection);
    redlock_link_end(&server->dial.link);
    redlock_rotation_ends(server);
    redlock_credentials_clear(&server->rotation.spare);
    server->resumes = false;
    redlock_phase_set(server, phase, why);
    server->due_ns = now_ns + delay_ns;
    server->reactor.log(server->reactor.ctx, is_new ? level : REDLOCK_LOG_DEBUG,
                        "node %s: %s; next try in about %lld ms", server->address.name, redlock_text_string(why),
                        (long long)(delay_ns / REDLOCK_NS_PER_MS));
    server->first_try_done = true;
    redlock_requests_end(server);
    redlock_subscription_end(&server->subscription, server->why);
    server->callbacks.ready_changed(server->callbacks.ctx, server->index, false);
    redlock_server_rearm(server, server->due_ns);
}

void redlock_phase_unusable(struct redlock_server *server, struct redlock_text *why) {
    end_try(server, REDLOCK_PHASE_UNUSABLE, why);
}

void redlock_phase_lost(struct redlock_server *server, struct redlock_text *why) {
    end_try(server, redlock_text_cause(why) == REDLOCK_CAUSE_TLS ? REDLOCK_PHASE_UNUSABLE : REDLOCK_PHASE_WAITING, why);
}
