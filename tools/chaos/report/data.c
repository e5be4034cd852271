/*
 * What the page says of a run beyond its history: when things were over, and how they ended; and
 * what its script draws, as JSON. Times are in ticks of tick_us since the start. Leases and
 * acquires are lists of numbers, by time, each relative to the one before it, so that the page
 * stays small:
 *
 * lease    [ticks since the end of the one before, length, resource, how (enum chaos_how; 8 more if
 *          it is shared), token, ticks until it would have run out, ticks to each renewal…]
 *          What follows the token is left out of a lease that was released without a renewal.
 * acquire  (that completed) [ticks from the end of the one before to the end of this one,
 *          µs that it took, resource, result, attempts, votes, 1 if it is shared]
 */
#include <stdlib.h>

#include "report/html.h"
#include "report/parts.h"

int64_t chaos_view_band_end(const struct chaos_view *view, const struct chaos_band *band) {
    int64_t end_us = view->history->start_us + view->end_us;
    bool lasts = chaos_fault_about(band->fault.kind)->lasts;
    int64_t to_us = band->to_us == CHAOS_NEVER_US ? (lasts ? end_us : band->from_us) : band->to_us;
    return chaos_most(to_us, band->from_us + chaos_fault_length_ms(&band->fault) * 1000);
}

const char *chaos_view_shade(const struct chaos_band *band) {
    const struct chaos_fault_about *about = chaos_fault_about(band->fault.kind);
    if (about->breaks) {
        return "breaks";
    }
    if (about->target == CHAOS_TARGET_LINKS) {
        return "link";
    }
    return about->exclusive ? "down" : "ill";
}

/* Until when the client relied on the lease, as the checker sees it, and how it ended. */
static int64_t lease_end(const struct chaos_view *view, const struct chaos_lease *lease, enum chaos_how *how) {
    const struct chaos_history *history = view->history;
    int64_t end_us = history->start_us + view->end_us;
    if (lease->ended_us != CHAOS_NEVER_US) {
        bool late = lease->ended_us > lease->until_us;
        *how = !lease->released ? CHAOS_HOW_LOST : late ? CHAOS_HOW_LATE : CHAOS_HOW_RELEASED;
        return late ? lease->until_us : lease->ended_us;
    }
    *how = CHAOS_HOW_HELD;
    CHAOS_EACH(const struct chaos_life, life, history->lives, history->life_count) {
        if (life->client == lease->client && life->ended_us >= lease->from_us && life->ended_us <= end_us) {
            *how = life->status == 0 ? CHAOS_HOW_HELD : CHAOS_HOW_DIED;
            end_us = life->ended_us;
        }
    }
    return lease->until_us < end_us ? lease->until_us : end_us;
}

struct chaos_view chaos_view_of(const struct chaos_history *history, const struct chaos_verdict *verdict,
                                const struct chaos_experiment *experiment) {
    int64_t end_us = chaos_history_end_us(history) - history->start_us;
    struct chaos_view view = {history, verdict, experiment, end_us < 0 ? 0 : end_us, 100};
    /* A browser draws with 24 bits of precision. */
    while (view.end_us / view.tick_us > 8000000) {
        view.tick_us *= 10;
    }
    return view;
}

/* In runs with more leases the page leaves out the tokens of those that were released in time: it
 * shall stay small. */
enum { LEASES_WITH_TOKENS = 40000 };

enum { HOW_SHARED = 8 };

/* Without memory there is no list any more, nor what it is packed into. */
static void add(json_t **list, json_t *item) {
    if (json_array_append_new(*list, item) != 0) {
        json_decref(*list);
        *list = NULL;
    }
}

/* Kept within the run. */
static json_int_t tick(const struct chaos_view *view, int64_t at_us) {
    json_int_t at = (at_us - view->history->start_us) / view->tick_us, last = view->end_us / view->tick_us + 1;
    return at < 0 ? 0 : at > last ? last : at;
}

static json_t *numbers(uint64_t bits) {
    json_t *list = json_array();
    for (int i = 0; i < 64; i++) {
        if ((bits >> i & 1) != 0) {
            add(&list, json_integer(i));
        }
    }
    return list;
}

static void add_lease(const struct chaos_view *view, json_t **list, const struct chaos_lease *lease, json_int_t *last) {
    enum chaos_how how;
    json_int_t from = tick(view, lease->from_us), to = tick(view, lease_end(view, lease, &how));
    to = to < from ? from : to;
    bool plain = how == CHAOS_HOW_RELEASED && view->history->lease_count > LEASES_WITH_TOKENS;
    json_t *item = json_pack("[I,I,i,i,o]", from - *last, to - from, lease->resource,
                             (int)how + (lease->shared ? HOW_SHARED : 0), chaos_json_text(plain ? "" : lease->token));
    if (how != CHAOS_HOW_RELEASED || lease->claim_count > 1) {
        add(&item, json_integer((lease->until_us - lease->from_us) / view->tick_us));
    }
    for (size_t i = 1; i < lease->claim_count; i++) {
        add(&item, json_integer(tick(view, lease->claims[i].at_us) - from));
    }
    *last = to;
    add(list, item);
}

static void add_acquire(const struct chaos_view *view, json_t **list, const struct chaos_operation *operation,
                        json_int_t *last) {
    json_int_t at = tick(view, operation->completed_us);
    json_t *item = json_pack("[I,I,i,o,I,o]", at - *last, (json_int_t)(operation->completed_us - operation->invoked_us),
                             operation->resource, chaos_json_text(operation->result), (json_int_t)operation->attempts,
                             chaos_json_text(operation->votes));
    if (operation->shared) {
        add(&item, json_integer(1));
    }
    *last = at;
    add(list, item);
}

static json_t *unhealthy_spans(const struct chaos_view *view, int client) {
    size_t count;
    struct chaos_span *spans = chaos_unhealthy_spans(view->history, client, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        add(&list, json_pack("[I,I]", tick(view, spans[i].from_us), tick(view, spans[i].to_us)));
    }
    free(spans);
    return list;
}

static json_t *client_data(const struct chaos_view *view, int client) {
    const struct chaos_history *history = view->history;
    json_t *leases = json_array(), *acquires = json_array();
    json_int_t last = 0;
    for (size_t i = 0; i < history->lease_count; i++) {
        if (history->leases[i].client == client) {
            add_lease(view, &leases, &history->leases[i], &last);
        }
    }
    last = 0;
    for (size_t i = 0; i < history->operation_count; i++) {
        const struct chaos_operation *operation = &history->operations[i];
        if (operation->client == client && operation->what == CHAOS_ACQUIRE &&
            operation->completed_us != CHAOS_NEVER_US) {
            add_acquire(view, &acquires, operation, &last);
        }
    }
    return json_pack("{s:o,s:o,s:o}", "leases", leases, "acquires", acquires, "unhealthy",
                     unhealthy_spans(view, client));
}

/* Until when guards keep the fault's nodes from voting; its begin: they do not, or no end. */
static json_int_t kept_until(const struct chaos_view *view, const struct chaos_band *band) {
    const struct chaos_history *history = view->history;
    bool kept = band->to_us != CHAOS_NEVER_US && chaos_is_guarded(history, &band->fault);
    return tick(view, kept ? band->to_us + history->protection.ttl_max_ms * 1000 : band->from_us);
}

static json_t *band_data(const struct chaos_view *view, const struct chaos_band *band) {
    return json_pack("{s:I,s:I,s:I,s:o,s:o,s:s,s:s,s:o,s:b}", "from", tick(view, band->from_us), "to",
                     tick(view, chaos_view_band_end(view, band)), "kept", kept_until(view, band), "nodes",
                     numbers(band->fault.nodes), "clients", numbers(band->fault.clients), "kind",
                     chaos_fault_about(band->fault.kind)->name, "shade", chaos_view_shade(band), "text",
                     chaos_json_text(band->text), "failed", (int)(band->error != NULL));
}

static json_t *violation_data(const struct chaos_view *view, const struct chaos_violation *violation) {
    uint64_t clients = 0;
    for (int c = 0; c < 2; c++) {
        clients |= violation->clients[c] < 0 ? 0 : UINT64_C(1) << violation->clients[c];
    }
    return json_pack("{s:s,s:I,s:I,s:i,s:o,s:o}", "kind", chaos_violation_abouts[violation->kind].name, "from",
                     tick(view, violation->from_us), "to", tick(view, violation->to_us), "resource",
                     violation->resource, "clients", numbers(clients), "text", chaos_json_text(violation->text));
}

static json_t *refusal_data(const struct chaos_view *view, const struct chaos_refusal *refusal) {
    return json_pack("{s:I,s:i,s:i,s:b,s:I,s:I}", "at", tick(view, refusal->at_us), "client", refusal->client,
                     "resource", refusal->resource, "write", (int)refusal->write, "fence", (json_int_t)refusal->fence,
                     "highest", (json_int_t)refusal->highest);
}

json_t *chaos_page_data(const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    json_t *resources = json_array(), *bands = json_array(), *violations = json_array(), *refusals = json_array(),
           *clients = json_array();
    for (size_t i = 0; i < history->resource_count; i++) {
        add(&resources, chaos_json_text(history->resources[i]));
    }
    for (size_t i = 0; i < history->client_count; i++) {
        add(&clients, client_data(view, (int)i));
    }
    for (size_t i = 0; i < history->band_count; i++) {
        add(&bands, band_data(view, &history->bands[i]));
    }
    for (size_t i = 0; i < view->verdict->violation_count && i < CHAOS_VIOLATIONS_SHOWN; i++) {
        add(&violations, violation_data(view, &view->verdict->violations[i]));
    }
    for (size_t i = 0; i < history->refusal_count; i++) {
        add(&refusals, refusal_data(view, &history->refusals[i]));
    }
    return json_pack("{s:I,s:I,s:i,s:i,s:o,s:o,s:o,s:o,s:o}", "tick_us", (json_int_t)view->tick_us, "end",
                     tick(view, INT64_MAX), "nodes", (int)history->node_count, "quorum", (int)chaos_quorum(history),
                     "clients", clients, "resources", resources, "faults", bands, "violations", violations, "refusals",
                     refusals);
}
