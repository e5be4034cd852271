/* What the page's script knows: JSON, times in ticks and relative to the one before where they come in a row. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_parts.h"
#include "report/report_text.h"

/* In runs with more leases than this the page leaves out the tokens of those that were released as they should: it shall stay small. */
enum { LEASES_WITH_TOKENS = 40000 };

/* A list of different strings, which the items refer to by number. */
enum { WORDS_MAX = 4096 };

struct words {
    const char *known[WORDS_MAX];
    size_t count;
};

/* The number of a word; that of the last one where there is no room. */
static size_t word(struct words *words, const char *text) {
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->known[i], text) == 0) {
            return i;
        }
    }
    if (words->count < WORDS_MAX - 1) {
        words->known[words->count++] = text;
        return words->count - 1;
    }
    words->known[WORDS_MAX - 1] = "…";
    words->count = WORDS_MAX;
    return WORDS_MAX - 1;
}

static void put_words(FILE *out, const char *name, const struct words *words) {
    fprintf(out, ",\n\"%s\":[", name);
    for (size_t i = 0; i < words->count; i++) {
        fputs(i > 0 ? "," : "", out);
        chaos_page_json(out, words->known[i]);
    }
    fputs("]", out);
}

/* [gap since the last one's end, length, resource, how, wait, attempts, votes, token, until if it did not end by a release, claims after the first…] */
static void put_leases(FILE *out, const struct chaos_view *view, size_t client, struct words *votes) {
    int64_t last = 0;
    size_t cursor = view->operation_first[client];
    for (size_t i = view->lease_first[client]; i < view->lease_first[client + 1]; i++) {
        const struct chaos_lease *lease = &view->history->leases[view->leases[i]];
        const struct chaos_operation *acquire = chaos_view_acquire(view, lease, &cursor);
        enum chaos_how how;
        int64_t from = chaos_view_tick(view, lease->from_us);
        int64_t to = chaos_view_tick(view, chaos_view_lease_end(view, lease, &how));
        int64_t wait = acquire == NULL ? -1 : from - chaos_view_tick(view, acquire->invoked_us);
        to = to < from ? from : to;
        fprintf(out, "%s[%" PRId64 ",%" PRId64 ",%d,%d,%" PRId64 ",%" PRId64 ",%zu,",
                i > view->lease_first[client] ? "," : "", from - last, to - from, lease->resource, (int)how, wait,
                acquire == NULL ? 0 : acquire->attempts, word(votes, acquire == NULL ? "" : acquire->votes));
        bool plain = how == CHAOS_HOW_RELEASED && view->history->lease_count > LEASES_WITH_TOKENS;
        chaos_page_json(out, plain ? "" : lease->token);
        if (how != CHAOS_HOW_RELEASED || lease->claim_count > 1) {
            fprintf(out, ",%" PRId64, (lease->until_us - lease->from_us) / view->tick_us);
        }
        for (size_t c = 1; c < lease->claim_count; c++) {
            fprintf(out, ",%" PRId64, chaos_view_tick(view, lease->claims[c].at_us) - from);
        }
        fputs("]", out);
        last = to;
    }
}

/* [gap since the last one's end to this one's, how long it took, resource, result, attempts, votes] */
static void put_failures(FILE *out, const struct chaos_view *view, size_t client, struct words *votes,
                         struct words *results) {
    int64_t last = 0;
    const char *comma = "";
    for (size_t i = view->operation_first[client]; i < view->operation_first[client + 1]; i++) {
        const struct chaos_operation *operation = &view->history->operations[view->operations[i]];
        if (chaos_view_failed(operation)) {
            int64_t at = chaos_view_tick(view, operation->completed_us);
            fprintf(out, "%s[%" PRId64 ",%" PRId64 ",%d,%zu,%" PRId64 ",%zu]", comma, at - last,
                    at - chaos_view_tick(view, operation->invoked_us), operation->resource,
                    word(results, operation->result), operation->attempts, word(votes, operation->votes));
            last = at;
            comma = ",";
        }
    }
}

static void put_numbers(FILE *out, uint64_t bits) {
    const char *comma = "";
    fputs("[", out);
    for (int i = 0; i < 64; i++) {
        if (bits >> i & 1) {
            fprintf(out, "%s%d", comma, i);
            comma = ",";
        }
    }
    fputs("]", out);
}

static void put_bands(FILE *out, const struct chaos_view *view) {
    fputs(",\n\"bands\":[", out);
    for (size_t i = 0; i < view->history->band_count; i++) {
        const struct chaos_band *band = &view->history->bands[i];
        fprintf(out, "%s[%" PRId64 ",%" PRId64 ",", i > 0 ? ",\n" : "", chaos_view_tick(view, band->from_us),
                chaos_view_tick(view, chaos_view_band_end(view, band)));
        put_numbers(out, band->fault.nodes);
        fputs(",", out);
        put_numbers(out, band->fault.clients);
        fputs(",", out);
        chaos_page_json(out, band->text);
        fputs("]", out);
    }
    fputs("]", out);
}

/* [from, to, clients, number in the list] */
static void put_violations(FILE *out, const struct chaos_view *view) {
    fputs(",\n\"violations\":[", out);
    for (size_t i = 0; i < view->verdict->violation_count && i < CHAOS_VIOLATIONS_SHOWN; i++) {
        const struct chaos_violation *violation = &view->verdict->violations[i];
        uint64_t clients = 0;
        for (int c = 0; c < 2; c++) {
            clients |= violation->clients[c] < 0 ? 0 : UINT64_C(1) << violation->clients[c];
        }
        fprintf(out, "%s[%" PRId64 ",%" PRId64 ",", i > 0 ? "," : "", chaos_view_tick(view, violation->from_us),
                chaos_view_tick(view, violation->to_us));
        put_numbers(out, clients);
        fputs(",", out);
        chaos_page_json(out, violation->text);
        fputs("]", out);
    }
    fputs("]", out);
}

static bool put_buckets(FILE *out, const struct chaos_view *view) {
    size_t count, step_count;
    struct chaos_bucket *buckets = chaos_view_buckets(view, &count);
    struct chaos_step *steps = chaos_view_unwell(view, &step_count);
    if (buckets == NULL || steps == NULL) {
        free(buckets);
        free(steps);
        errno = ENOMEM;
        return false;
    }
    fprintf(out, ",\n\"bucket\":%" PRId64 ",\"buckets\":[", chaos_view_bucket_us(view) / view->tick_us);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "",
                buckets[i].acquired, buckets[i].contended, buckets[i].failed, buckets[i].p50_us, buckets[i].p99_us);
    }
    fputs("],\n\"unwell\":[", out);
    for (size_t i = 0; i < step_count; i++) {
        fprintf(out, "%s[%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "", steps[i].tick, steps[i].clients);
    }
    fputs("]", out);
    free(buckets);
    free(steps);
    return true;
}

static void put_shape(FILE *out, const struct chaos_view *view) {
    fprintf(out, "{\"tick\":%" PRId64 ",\"end\":%" PRId64 ",\"top\":%d,\"pitch\":%d,\"bar\":%d,\"nodes\":[",
            view->tick_us, view->ticks, view->clients_y, view->pitch, view->bar);
    for (size_t i = 0; i < view->history->node_count; i++) {
        fprintf(out, "%s[%d,%d]", i > 0 ? "," : "", view->node_y[i], view->node_height[i]);
    }
    fputs("],\n\"resources\":[", out);
    for (size_t i = 0; i < view->history->resource_count; i++) {
        fputs(i > 0 ? "," : "", out);
        chaos_page_json(out, view->history->resources[i]);
    }
    fputs("]", out);
}

bool chaos_page_data(FILE *out, const struct chaos_view *view) {
    struct words *words = calloc(2, sizeof *words);
    if (words == NULL) {
        errno = ENOMEM;
        return false;
    }
    fputs("<script type=\"application/json\" id=\"chaos-data\">", out);
    put_shape(out, view);
    fputs(",\n\"leases\":[", out);
    for (size_t i = 0; i < view->history->client_count; i++) {
        fputs(i > 0 ? ",\n[" : "[", out);
        put_leases(out, view, i, &words[0]);
        fputs("]", out);
    }
    fputs("],\n\"failures\":[", out);
    for (size_t i = 0; i < view->history->client_count; i++) {
        fputs(i > 0 ? ",\n[" : "[", out);
        put_failures(out, view, i, &words[0], &words[1]);
        fputs("]", out);
    }
    fputs("]", out);
    put_words(out, "votes", &words[0]);
    put_words(out, "results", &words[1]);
    put_bands(out, view);
    put_violations(out, view);
    bool worked = put_buckets(out, view);
    fputs("}</script>\n", out);
    free(words);
    return worked;
}
