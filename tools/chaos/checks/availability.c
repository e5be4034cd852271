/* When a quorum of nodes is healthy, for whom; and what became of the acquires meanwhile. The
 * definitions are in check.h. */
#include <stdlib.h>

#include "checks/check_parts.h"
#include "values/values.h"

/* Something begins (+) or ends (-) to count for so much. */
struct edge {
    int64_t at_us;
    int64_t weight;
};

struct edges {
    struct edge *list;
    size_t count;
};

/* [from, to) for so much; nothing if it is empty. */
static void push(struct edges *edges, int64_t from_us, int64_t to_us, int64_t weight) {
    if (from_us < to_us) {
        chaos_add(&edges->list, &edges->count, &(struct edge){from_us, weight}, sizeof(struct edge));
        chaos_add(&edges->list, &edges->count, &(struct edge){to_us, -weight}, sizeof(struct edge));
    }
}

/* Begins come first, so that what touches is one. */
CHAOS_ORDER(compare, edge, chaos_order_by(x->at_us, y->at_us, y->weight, x->weight))

/* The times when all that counts is at least as much; the edges are freed. */
static struct chaos_span *fold(struct edges *edges, int64_t least, size_t *count) {
    struct chaos_span *spans = NULL, span = {0};
    int64_t sum = 0;
    *count = 0;
    chaos_sort(edges->list, edges->count, sizeof *edges->list, compare);
    for (size_t i = 0; i < edges->count; i++) {
        bool was = sum >= least;
        sum += edges->list[i].weight;
        if (!was && sum >= least) {
            span.from_us = edges->list[i].at_us;
        } else if (was && sum < least) {
            span.to_us = edges->list[i].at_us;
            chaos_add(&spans, count, &span, sizeof span);
        }
    }
    free(edges->list);
    return spans;
}

/* Whether a fault keeps votes from coming, as opposed to one that makes them slower, or wrong. */
static bool silences(const struct chaos_history *history, const struct chaos_fault *fault) {
    static const bool always[CHAOS_FAULT_KINDS] = {
        [CHAOS_FAULT_KILL] = true,          [CHAOS_FAULT_RESTART_EMPTY] = true, [CHAOS_FAULT_PAUSE] = true,
        [CHAOS_FAULT_DROP] = true,          [CHAOS_FAULT_BUSY] = true,          [CHAOS_FAULT_DISCONNECT] = true,
        [CHAOS_FAULT_OOM] = true,           [CHAOS_FAULT_PASSWORD] = true,      [CHAOS_FAULT_PARTITION] = true,
        [CHAOS_FAULT_LOSE_REQUESTS] = true, [CHAOS_FAULT_LOSE_REPLIES] = true,  [CHAOS_FAULT_CUT] = true,
        [CHAOS_FAULT_SILENT] = true};
    return always[fault->kind] || (fault->kind == CHAOS_FAULT_SLOW && fault->amount >= history->node_timeout_ms) ||
           (fault->kind == CHAOS_FAULT_DELAY && 2 * fault->amount >= history->node_timeout_ms);
}

enum view {
    AS_HEALTHY,  /* whatever a fault does, and the settle time after it */
    AS_SILENCED, /* what keeps votes from coming, to the heal itself */
};

static int64_t band_end_us(const struct chaos_history *history, const struct chaos_band *band, enum view view) {
    int64_t to_us = chaos_over(band->to_us, INT64_MAX), length_ms = chaos_fault_length_ms(&band->fault);
    /* A node that sleeps or runs a script is so for this long, whenever that was written down. */
    if (length_ms > 0 && length_ms < 86400000) {
        to_us = chaos_most(to_us, chaos_plus(band->from_us, length_ms * 1000));
    }
    return view == AS_HEALTHY ? chaos_plus(to_us, (2 * history->node_timeout_ms + 2500) * 1000) : to_us;
}

/* The times when node n is unhealthy for the client, each once however many faults hit it. Bands
 * come by from_us. */
static void push_node(struct edges *edges, const struct chaos_history *history, int client, size_t node, enum view view,
                      int64_t end_us) {
    int64_t from_us = 0, to_us = INT64_MIN;
    CHAOS_EACH(const struct chaos_band, band, history->bands, history->band_count) {
        const struct chaos_fault *fault = &band->fault;
        /* A fault of nodes has no clients, one of clients has no nodes. */
        bool hits = chaos_hits_node(fault, node) && (fault->clients == 0 || chaos_hits_client(fault, (size_t)client));
        if (!hits || (view == AS_SILENCED && !silences(history, fault))) {
            continue;
        }
        if (band->from_us > to_us) {
            push(edges, from_us, to_us, 1);
            from_us = band->from_us;
            to_us = INT64_MIN;
        }
        to_us = chaos_most(to_us, chaos_least(band_end_us(history, band, view), end_us));
    }
    push(edges, from_us, to_us, 1);
}

/* For a client with this setup. */
static struct chaos_span *spans_with(const struct chaos_history *history, int client, const struct chaos_setup *setup,
                                     enum view view, size_t *count) {
    int64_t nodes = (int64_t)chaos_count_bits(setup->nodes), end_us = chaos_history_end_us(history);
    struct edges edges = {0};
    for (size_t n = 0; n < history->node_count; n++) {
        if ((setup->nodes >> n & 1) != 0) {
            push_node(&edges, history, client, n, view, end_us);
        }
    }
    CHAOS_EACH(const struct chaos_band, band, history->bands, history->band_count) {
        bool own = band->fault.kind == CHAOS_FAULT_CLIENT_PAUSE || band->fault.kind == CHAOS_FAULT_CLIENT_KILL;
        if (own && chaos_hits_client(&band->fault, (size_t)client)) {
            /* To a client that does not run, no node is healthy. */
            push(&edges, band->from_us, chaos_least(chaos_over(band->to_us, end_us), end_us), nodes);
        }
    }
    return fold(&edges, nodes - (int64_t)setup->quorum + 1, count);
}

/* Adds what lies between the two times, of the spans of a setup. */
static void add_spans(const struct chaos_history *history, int client, const struct chaos_setup *setup, enum view view,
                      struct chaos_span within, struct edges *edges) {
    size_t count;
    struct chaos_span *spans = spans_with(history, client, setup, view, &count);
    for (size_t i = 0; i < count; i++) {
        push(edges, chaos_most(spans[i].from_us, within.from_us), chaos_least(spans[i].to_us, within.to_us), 1);
    }
    free(spans);
}

/* A client that is told of other nodes has each setup until its next process begins. */
static struct chaos_span *unhealthy_spans(const struct chaos_history *history, int client, enum view view,
                                          size_t *count) {
    struct chaos_setup setup = chaos_setup_default(history->node_count);
    struct edges edges = {0};
    int64_t from_us = INT64_MIN;
    if (!chaos_is_configured(history)) {
        return spans_with(history, client, &setup, view, count);
    }
    CHAOS_EACH(const struct chaos_life, life, history->lives, history->life_count) {
        if (life->client != client) {
            continue;
        }
        if (from_us != INT64_MIN) {
            add_spans(history, client, &setup, view, (struct chaos_span){from_us, life->spawned_us}, &edges);
        }
        from_us = life->spawned_us;
        setup = life->setup.nodes != 0 ? life->setup : setup;
    }
    add_spans(history, client, &setup, view, (struct chaos_span){from_us, INT64_MAX}, &edges);
    return fold(&edges, 1, count);
}

struct chaos_span *chaos_unhealthy_spans(const struct chaos_history *history, int client, size_t *count) {
    return unhealthy_spans(history, client, AS_HEALTHY, count);
}

/* The times that are unhealthy for as many clients at least. */
static struct chaos_span *shared_spans(const struct chaos_history *history, enum view view, size_t least,
                                       size_t *count) {
    struct edges edges = {0};
    for (size_t client = 0; client < history->client_count; client++) {
        size_t own_count;
        struct chaos_span *own = unhealthy_spans(history, (int)client, view, &own_count);
        for (size_t i = 0; i < own_count; i++) {
            push(&edges, own[i].from_us, own[i].to_us, 1);
        }
        free(own);
    }
    return fold(&edges, (int64_t)least, count);
}

CHAOS_ORDER(compare_ends, chaos_span, chaos_order(x->to_us, y->to_us))

/* Whether one of the spans, which come by time, has a part of [from, to]. */
static bool meets(const struct chaos_span *spans, size_t count, int64_t from_us, int64_t to_us) {
    struct chaos_span later = {.to_us = chaos_plus(from_us, 1)};
    size_t next = chaos_count_before(spans, count, sizeof later, &later, compare_ends);
    return next < count && spans[next].from_us < to_us;
}

static void count_healthy(struct chaos_case *c, int client) {
    size_t count;
    struct chaos_span *spans = chaos_unhealthy_spans(c->history, client, &count);
    CHAOS_EACH(const struct chaos_operation, operation, c->history->operations, c->history->operation_count) {
        bool was_cut = chaos_ended(operation, "CLOSED") || chaos_ended(operation, "CANCELLED");
        if (operation->client == client && operation->what == CHAOS_ACQUIRE &&
            operation->completed_us != CHAOS_NEVER_US && !was_cut &&
            !meets(spans, count, operation->invoked_us, operation->completed_us)) {
            c->verdict->healthy_acquires++;
            c->verdict->healthy_acquired += chaos_ended(operation, "OK");
        }
    }
    free(spans);
}

/* When acquires that were OK completed, by time; and from when to when there were acquires at
 * all. */
static int64_t *acquired_times(const struct chaos_history *history, size_t *count, struct chaos_span *tried) {
    int64_t *times_us = chaos_allocate(history->operation_count, sizeof *times_us);
    *count = 0;
    *tried = (struct chaos_span){INT64_MAX, INT64_MIN};
    CHAOS_EACH(const struct chaos_operation, operation, history->operations, history->operation_count) {
        if (operation->what != CHAOS_ACQUIRE || operation->completed_us == CHAOS_NEVER_US) {
            continue;
        }
        tried->from_us = chaos_least(tried->from_us, operation->invoked_us);
        tried->to_us = chaos_most(tried->to_us, operation->completed_us);
        if (chaos_ended(operation, "OK")) {
            times_us[(*count)++] = operation->completed_us;
        }
    }
    qsort(times_us, *count, sizeof *times_us, tool_number_order);
    return times_us;
}

/* The longest part of [from, to] in which none of the times lies; *next is moved to the first after
 * to. */
static int64_t longest_gap(const int64_t *times_us, size_t count, size_t *next, struct chaos_span span) {
    int64_t gap_us = 0, last_us = span.from_us;
    for (; *next < count && times_us[*next] <= span.to_us; (*next)++) {
        gap_us = chaos_most(gap_us, times_us[*next] - last_us);
        last_us = chaos_most(last_us, times_us[*next]);
    }
    return chaos_most(gap_us, span.to_us - last_us);
}

static void find_gap(struct chaos_case *c, const int64_t *times_us, size_t count, struct chaos_span tried) {
    size_t span_count, next = 0;
    struct chaos_span *spans = shared_spans(c->history, AS_HEALTHY, 1, &span_count);
    int64_t at_us = tried.from_us;
    for (size_t i = 0; i <= span_count && at_us < tried.to_us; i++) {
        int64_t to_us = i < span_count ? chaos_least(spans[i].from_us, tried.to_us) : tried.to_us;
        if (to_us > at_us) {
            int64_t gap_us = longest_gap(times_us, count, &next, (struct chaos_span){at_us, to_us});
            c->verdict->longest_gap_us = chaos_most(c->verdict->longest_gap_us, gap_us);
        }
        at_us = i < span_count ? chaos_most(at_us, spans[i].to_us) : at_us;
    }
    free(spans);
}

static void find_recoveries(struct chaos_case *c, const int64_t *times_us, size_t count) {
    struct chaos_verdict *verdict = c->verdict;
    size_t outage_count, next = 0;
    struct chaos_span *outages = shared_spans(c->history, AS_SILENCED, c->history->client_count, &outage_count);
    for (size_t i = 0; i < outage_count && outages[i].to_us < c->end_us; i++) {
        struct chaos_recovery recovery = {outages[i].to_us, CHAOS_NEVER_US};
        while (next < count && times_us[next] <= recovery.healed_us) {
            next++;
        }
        if (next < count && (i + 1 == outage_count || times_us[next] <= outages[i + 1].from_us)) {
            recovery.acquired_us = times_us[next];
            int64_t took_us = recovery.acquired_us - recovery.healed_us, least_us = verdict->recovered_least_us;
            verdict->recovered_least_us = verdict->recovered == 0 ? took_us : chaos_least(least_us, took_us);
            verdict->recovered_most_us = chaos_most(verdict->recovered_most_us, took_us);
            verdict->recovered++;
        }
        chaos_add(&verdict->recoveries, &verdict->recovery_count, &recovery, sizeof recovery);
    }
    free(outages);
}

void chaos_availability(struct chaos_case *c) {
    size_t count;
    struct chaos_span tried;
    int64_t *times_us = acquired_times(c->history, &count, &tried);
    for (size_t client = 0; client < c->history->client_count; client++) {
        count_healthy(c, (int)client);
    }
    for (size_t i = 1; i < count; i++) {
        c->verdict->longest_without_us = chaos_most(c->verdict->longest_without_us, times_us[i] - times_us[i - 1]);
    }
    find_gap(c, times_us, count, tried);
    find_recoveries(c, times_us, count);
    free(times_us);
}

int64_t chaos_availability_10000(const struct chaos_verdict *verdict) {
    return verdict->healthy_acquires == 0 ? 10000 : verdict->healthy_acquired * 10000 / verdict->healthy_acquires;
}
