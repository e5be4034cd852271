/* A second try beside a connection that is silent. */
#include "server/spare.h"

#include <assert.h>
#include <string.h>

#include "core/time.h"
#include "server/phase.h"
#include "server/requests.h"
#include "server/rotation.h"
#include "server/subscription.h"

static bool may_need_one(const struct redlock_server *server) {
    return redlock_server_is_up(server) && server->dial.link.state == REDLOCK_LINK_OFF &&
           server->connection.inflight.expired > 0;
}

static int64_t begin_ns(const struct redlock_server *server) {
    const int64_t answer_ns = redlock_server_is_far(server) ? 2 * server->shortest_ns : server->timeout_ns;
    const int64_t silent_ns = redlock_after_ns(server->heard_ns, answer_ns);
    return silent_ns > server->dial.again_ns ? silent_ns : server->dial.again_ns;
}

bool redlock_spare_is_due(const struct redlock_server *server, int64_t now_ns) {
    return may_need_one(server) && now_ns >= begin_ns(server);
}

void redlock_spare_look(struct redlock_server *server, int64_t now_ns) {
    if (may_need_one(server)) {
        const int64_t when_ns = begin_ns(server) > now_ns ? begin_ns(server) : now_ns;
        server->dial.begun_ns = when_ns;
        redlock_link_set(&server->dial.link, REDLOCK_LINK_OFF, when_ns);
    }
}

static void end(struct redlock_server *server) {
    struct redlock_dial *dial = &server->dial;
    const int64_t now_ns = redlock_server_now_ns(server);
    assert(redlock_server_has_spare(server));
    redlock_link_end(&dial->link);
    redlock_credentials_clear(&server->rotation.spare);
    dial->again_ns = now_ns + redlock_link_delay_ns(now_ns, &server->jitter, &dial->failures, dial->again_ns);
}

void redlock_spare_is_not_due(struct redlock_server *server, int64_t now_ns) {
    server->reactor.flush_soon(server->reactor.ctx, &server->connection.watch); /* what was kept */
    redlock_spare_look(server, now_ns);
}

void redlock_spare_is_needless(struct redlock_server *server) {
    server->timeouts = 0;
    if (redlock_server_has_spare(server)) {
        end(server);
    }
    redlock_spare_is_not_due(server, server->heard_ns); /* there may be more overdue */
}

void redlock_spare_in_vain(struct redlock_server *server, const char *why) {
    server->reactor.log(server->reactor.ctx, REDLOCK_LOG_DEBUG, "node %s: the second connection failed: %s",
                        server->address.name, why);
    end(server);
    redlock_spare_is_not_due(server, redlock_server_now_ns(server));
}

bool redlock_spare_replaces(struct redlock_server *server) {
    assert(redlock_server_has_spare(server));
    const struct redlock_handshake *handshake = &server->dial.handshake;
    /* The answers may be here already: the two sockets are read in any order. */
    server->connection.watch.on_io(&server->connection.watch, REDLOCK_READABLE);
    if (!redlock_server_has_spare(server)) {
        return false;
    }
    const long long silent_ms = (redlock_server_now_ns(server) - server->heard_ns) / REDLOCK_NS_PER_MS;
    server->reactor.log(server->reactor.ctx, REDLOCK_LOG_WARNING,
                        "node %s: nothing was heard on its connection for %lld ms, and a new one answers: the old one "
                        "is given up",
                        server->address.name, silent_ms);
    server->resumes = handshake->info.run_id[0] != '\0' && strcmp(handshake->info.run_id, server->known_run_id) == 0;
    redlock_connection_reset(&server->connection);
    redlock_phase_set(server, REDLOCK_PHASE_INTRODUCING,
                      redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the connection was silent and is replaced"));
    return true;
}

/* Such an AUTH goes to the new connection with the other requests. */
static bool keeps_auth(const struct redlock_server *server) {
    const struct redlock_connection *connection = &server->connection;
    const struct redlock_inflight *inflight = &connection->inflight;
    for (size_t i = inflight->count; server->resumes && i-- > 0;) {
        const struct redlock_inflight_entry *entry = redlock_inflight_at(inflight, i);
        if (entry->owner == &server->rotation && !redlock_connection_has_written(connection, entry)) {
            return true;
        }
    }
    return false;
}

void redlock_spare_replaced(struct redlock_server *server) {
    assert(server->phase == REDLOCK_PHASE_INTRODUCING && server->dial.link.state == REDLOCK_LINK_OFF);
    if (!keeps_auth(server)) {
        redlock_rotation_ends(server);
    }
    redlock_subscription_end(&server->subscription, server->why);
    if (server->resumes) {
        redlock_requests_end_written(server);
    } else {
        redlock_requests_end(server);
        server->callbacks.ready_changed(server->callbacks.ctx, server->index, false);
    }
}

bool redlock_spare_is_fresh(struct redlock_server *server, int64_t now_ns) {
    const int64_t end_ns = server->dial.begun_ns + server->timeout_ns;
    if ((!redlock_server_has_spare(server) && !redlock_spare_is_due(server, now_ns)) || now_ns >= end_ns) {
        return false;
    }
    redlock_server_rearm(server, end_ns);
    return true;
}

void redlock_spare_or_server_fails(struct redlock_server *server, struct redlock_text *why) {
    if (redlock_server_has_spare(server)) {
        redlock_spare_in_vain(server, redlock_text_string(why));
        redlock_text_drop(why);
    } else {
        redlock_phase_lost(server, why);
    }
}
