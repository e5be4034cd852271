/* A server's requests. */
#include "server/requests.h"

#include <assert.h>

#include "core/time.h"
#include "wire/script.h"

void redlock_requests_begin(struct redlock_server *server) {
    const struct redlock_inflight *inflight = &server->connection.inflight;
    for (size_t i = 0; i < inflight->count && !server->resumes; i++) {
        redlock_inflight_at(inflight, i)->queued_ns = server->up_ns;
    }
    if (inflight->count > 0) {
        server->reactor.flush_soon(server->reactor.ctx, &server->connection.watch);
        redlock_server_rearm(server, redlock_requests_next_ns(server));
    }
}

void redlock_requests_say(struct redlock_server *server, const char *const words[4]) {
    struct redlock_inflight_entry entry = {.queued_ns = redlock_server_now_ns(server), .own = true};
    struct redlock_outbox box = {0};
    if (redlock_handshake_say(&box, words)) {
        (void)redlock_requests_queue(server, box.bytes, redlock_outbox_size(&box), &entry);
    }
    redlock_outbox_clear(&box);
}

void redlock_requests_ping(struct redlock_server *server) {
    redlock_requests_say(server, (const char *[4]){"PING"});
}

void redlock_requests_load(struct redlock_server *server, unsigned kind) {
    assert(kind == REDLOCK_KIND_SHARED || kind == REDLOCK_KIND_SLOTS);
    server->loaded |= (uint16_t)kind; /* where that is not so, the answer is NOSCRIPT (R11) */
    if (!server->handshake.scripts_refused) {
        const struct redlock_script *script =
            &redlock_rare_scripts[kind == REDLOCK_KIND_SHARED ? REDLOCK_RARE_SCRIPT_SHARE : REDLOCK_RARE_SCRIPT_SLOTS];
        redlock_requests_say(server, (const char *[4]){"SCRIPT", "LOAD", script->source});
    }
}

static void answer(struct redlock_server *server, const struct redlock_inflight_entry *entry, redlock_vote_kind vote,
                   struct redlock_text *text, int64_t now_ns) {
    struct redlock_answer told = {.vote = vote, .read_ns = now_ns, .text = text};
    assert(vote == REDLOCK_VOTE_UNKNOWN || vote == REDLOCK_VOTE_FAILED);
    if (!entry->own) {
        server->callbacks.answer(server->callbacks.ctx, server->index, entry->owner, entry->round, &told);
    }
}

int64_t redlock_requests_next_ns(const struct redlock_server *server) {
    const struct redlock_inflight *inflight = &server->connection.inflight;
    if (inflight->expired == inflight->count || !redlock_requests_are_timed(server)) {
        return REDLOCK_NEVER_NS;
    }
    return redlock_requests_timeout_at_ns(server, redlock_inflight_at(inflight, inflight->expired));
}

/* Nothing was written, because it was kept for whichever connection answers, or was not taken. */
static struct redlock_text *withdrawn_text(const struct redlock_server *server) {
    const char *why = redlock_server_has_spare(server) ? "the node owes older answers"
                      : server->resumes                ? "the node has not answered the handshake yet"
                                                       : NULL;
    return why == NULL ? redlock_text_keep(server->withdrawn)
                       : redlock_text_new(REDLOCK_CAUSE_TIMEOUT, "%s: %s", redlock_text_string(server->withdrawn), why);
}

/*
 * A written request stays in the queue. Its reply still comes, in order, and is then dropped (R9).
 * Without a timeout, that reply is the request's answer. A request that was not written is
 * withdrawn, so that FAILED is true (R4). Meanwhile callbacks may queue more behind them.
 */
void redlock_requests_expire(struct redlock_server *server, int64_t now_ns) {
    struct redlock_connection *connection = &server->connection;
    struct redlock_inflight *inflight = &connection->inflight;
    struct redlock_text *why = NULL;
    size_t withdrawn = 0;
    if (!redlock_requests_are_timed(server)) {
        return; /* those wait for the end of the first try */
    }
    while (inflight->expired + withdrawn < inflight->count) {
        struct redlock_inflight_entry entry = *redlock_inflight_at(inflight, inflight->expired + withdrawn);
        if (now_ns < redlock_requests_timeout_at_ns(server, &entry)) {
            break;
        }
        if (redlock_connection_has_written(connection, &entry)) {
            inflight->expired++;
            server->timeouts++;
            if (!redlock_requests_has_no_timeout(&entry)) {
                answer(server, &entry, REDLOCK_VOTE_UNKNOWN,
                       redlock_server_is_far(server) ? server->far : server->timed_out, now_ns);
            }
        } else {
            withdrawn++;
            /* It was kept for want of an answer. */
            server->timeouts += redlock_server_has_spare(server) && !entry.own;
            why = why != NULL ? why : withdrawn_text(server);
            server->rotation.withdrawn |= entry.owner == &server->rotation;
            answer(server, &entry, REDLOCK_VOTE_FAILED, why, now_ns);
        }
    }
    redlock_text_drop(why);
    if (withdrawn > 0) {
        redlock_connection_withdraw(connection, inflight->expired, withdrawn);
    }
}

void redlock_requests_end_kept(struct redlock_server *server, int64_t now_ns) {
    assert(server->phase == REDLOCK_PHASE_STALLED);
    struct redlock_connection *connection = &server->connection;
    const struct redlock_inflight *inflight = &connection->inflight;
    struct redlock_text *why =
        redlock_text_new(redlock_text_cause(server->why), "nothing was sent: %s", redlock_text_string(server->why));
    size_t first = inflight->count;
    while (first > 0 && !redlock_connection_has_written(connection, redlock_inflight_at(inflight, first - 1))) {
        first--;
    }
    const size_t kept = inflight->count - first;
    for (size_t i = first; i < first + kept; i++) {
        const struct redlock_inflight_entry entry = *redlock_inflight_at(inflight, i);
        server->rotation.withdrawn |= entry.owner == &server->rotation;
        answer(server, &entry, REDLOCK_VOTE_FAILED, why, now_ns);
    }
    redlock_text_drop(why);
    if (kept > 0) {
        redlock_connection_withdraw(connection, first, kept);
    }
}

/* Answers those that were written; with `all`, the others too. */
static void end(struct redlock_server *server, bool all) {
    struct redlock_connection *connection = &server->connection;
    struct redlock_inflight_entry entry;
    const char *why = redlock_text_string(server->why);
    const enum redlock_cause cause = redlock_text_cause(server->why);
    int64_t now_ns = redlock_server_now_ns(server);
    struct redlock_text *after = NULL, *before = NULL;
    while (connection->inflight.count > 0 && (all || redlock_connection_owes_reply(connection))) {
        if (!redlock_inflight_pop(&connection->inflight, &entry) && !redlock_requests_has_no_timeout(&entry)) {
            continue;
        }
        if (redlock_connection_has_written(connection, &entry)) {
            after = after != NULL ? after : redlock_text_new(cause, "%s after the request was written", why);
            answer(server, &entry, REDLOCK_VOTE_UNKNOWN, after, now_ns);
        } else {
            before = before != NULL ? before : redlock_text_new(cause, "nothing was sent: %s", why);
            answer(server, &entry, REDLOCK_VOTE_FAILED, before, now_ns);
        }
    }
    redlock_text_drop(after);
    redlock_text_drop(before);
}

void redlock_requests_end(struct redlock_server *server) {
    end(server, true);
    redlock_connection_forget(&server->connection);
}

void redlock_requests_end_written(struct redlock_server *server) {
    redlock_connection_drop_begun(&server->connection);
    end(server, false);
}
