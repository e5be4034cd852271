/* A server's states, and when they change. */
#include "server/server.h"

#include <assert.h>
#include <string.h>

#include "core/time.h"
#include "server/connect.h"
#include "server/phase.h"
#include "server/requests.h"
#include "server/rotation.h"
#include "server/traffic.h"

/*
 * state        event                                       → state
 * NEW          first turn of the loop                      → DIALING
 * DIALING      the dial knows the server                   → INTRODUCING
 *              the dial fails                              → WAITING; UNUSABLE, see below
 * INTRODUCING  last reply                                  → READY
 *              the same server as an earlier node, no Lua  → UNUSABLE
 *              last reply; a later node has the same
 *              server, and gives way in the next turn      → the same; then READY
 *              an earlier node has the same server         → UNUSABLE
 *              closed, due_ns                              → WAITING
 * READY        3 timeouts without a reply, and the spare is
 *              not fresh (spare.h)                         → STALLED
 *              the spare knows the server                  → INTRODUCING
 *              closed, out of protocol                     → WAITING
 *              an earlier node has the same server         → UNUSABLE
 * STALLED      the PONG, after all that was in flight      → READY
 *              the spare knows the server                  → INTRODUCING
 *              closed, out of protocol, due_ns             → WAITING
 * WAITING      due_ns                                      → DIALING
 * UNUSABLE     due_ns                                      → DIALING
 *
 * The dial is a link (link.h), of a server that is DIALING, or the spare of one that is READY or
 * STALLED. Where a spare would fail, the server stays as it is: see spare.h.
 *
 * OFF        the server is DIALING, or needs a spare     → RESOLVING
 * RESOLVING  a literal, a path, or the lookup is done    → OPENING
 *            the lookup failed, give_up_ns               → OFF, WAITING (the lookup goes on, and
 *                                                          the next try waits for it)
 * SECURING   a certificate or a TLS version is refused   → OFF, UNUSABLE
 * GREETING   the reply to CLIENT ID                      → OFF, INTRODUCING
 *            a replica, no access,
 *            our certificate is refused                  → OFF, UNUSABLE
 *            loading                                     → OFF, WAITING
 * any        any other failure                           → OFF, WAITING
 */

/* Requests to a hanging server time out one by one, thousands a second. Wake up once a millisecond
 * for all of them. */
static int64_t up_to_ms(int64_t when_ns) {
    return when_ns > REDLOCK_NEVER_NS - REDLOCK_NS_PER_MS
               ? when_ns
               : (when_ns + REDLOCK_NS_PER_MS - 1) / REDLOCK_NS_PER_MS * REDLOCK_NS_PER_MS;
}

static void on_timer(struct redlock_watch *watch) {
    struct redlock_server *server = (struct redlock_server *)watch;
    int64_t now_ns = redlock_server_now_ns(server);
    server->timer_ns = REDLOCK_NEVER_NS;
    redlock_traffic_due(server, now_ns);
    if (server->yields != NULL && redlock_server_is_known(server)) {
        redlock_phase_unusable(server, redlock_text_keep(server->yields));
    } else if (redlock_server_is_connecting(server)) {
        redlock_connect_due(server, now_ns);
    } else if (server->due_ns <= now_ns) {
        assert(server->phase == REDLOCK_PHASE_WAITING || server->phase == REDLOCK_PHASE_UNUSABLE);
        redlock_connect_begin(server);
    }
    redlock_text_drop(server->yields);
    server->yields = NULL;
    const int64_t request_ns = up_to_ms(redlock_requests_next_ns(server));
    redlock_server_rearm(server, request_ns < server->due_ns ? request_ns : server->due_ns);
}

static bool make_texts(struct redlock_server *server) {
    long long timeout_ms = (long long)server->options.node_timeout_ms;
    server->timed_out = redlock_text_new(REDLOCK_CAUSE_TIMEOUT, "no answer within %lld ms", timeout_ms);
    server->withdrawn = redlock_text_new(REDLOCK_CAUSE_TIMEOUT, "nothing could be sent within %lld ms", timeout_ms);
    return server->timed_out != NULL && server->withdrawn != NULL;
}

/* Returns false without memory. */
static bool attach(struct redlock_server *server) {
    server->subscription.callbacks = &server->callbacks;
    server->subscription.index = server->index;
    server->subscription.jitter = &server->jitter;
    server->subscription.endpoint = &server->endpoint;
    server->subscription.run_id = server->info.run_id;
    return redlock_connection_init(&server->connection, &server->reactor) == 0 && redlock_connect_init(server) == 0 &&
           redlock_subscription_init(&server->subscription, &server->reactor, &server->address, &server->options) == 0;
}

bool redlock_server_init(struct redlock_server *server, unsigned index, struct redlock_address *address,
                         const struct redlock_server_options *options, const struct redlock_reactor *reactor,
                         const struct redlock_server_callbacks *callbacks) {
    assert(server->phase == REDLOCK_PHASE_NEW && index < REDLOCK_NODES_MAX);
    assert(options->node_timeout_ms > 0 && options->node_timeout_ms <= REDLOCK_TIMEOUT_MS_MAX);
    server->connection.watch =
        (struct redlock_watch){.on_io = redlock_traffic_io, .on_timer = on_timer, .on_flush = redlock_traffic_flush};
    server->reactor = *reactor;
    server->callbacks = *callbacks;
    server->options = *options;
    server->timeout_ns = options->node_timeout_ms * REDLOCK_NS_PER_MS;
    server->index = index;
    server->phase = REDLOCK_PHASE_NEW;
    server->timer_ns = server->due_ns = REDLOCK_NEVER_NS;
    server->round_trip_ns = -1;
    server->shortest_ns = INT64_MAX;
    server->info.uptime_s = -1;
    server->jitter = index; /* a fallback, if there are no random bytes */
    (void)reactor->random(reactor->ctx, &server->jitter, sizeof server->jitter);
    if (!make_texts(server) || !attach(server)) {
        return false;
    }
    server->address = *address;
    *address = (struct redlock_address){.kind = REDLOCK_ADDRESS_TCP};
    redlock_server_rearm(server, reactor->now_ns(reactor->ctx));
    return true;
}

void redlock_server_free(struct redlock_server *server, bool forked) {
    redlock_subscription_free(&server->subscription);
    redlock_connection_free(&server->connection);
    redlock_connection_free(&server->dial.link.connection);
    redlock_lookup_drop(server->dial.lookup, forked);
    redlock_text_drop(server->why);
    redlock_text_drop(server->yields);
    redlock_text_drop(server->timed_out);
    redlock_text_drop(server->withdrawn);
    redlock_text_drop(server->far);
    redlock_rotation_clear(&server->rotation);
    redlock_address_clear(&server->address);
}
