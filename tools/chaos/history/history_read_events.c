/* One event of a history, read strictly: each member that it needs, of its type and within its
 * range. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/history_read.h"

/* 30 years since the boot: sums and differences of times stay far from the end of int64_t. */
#define TIME_MAX_US   INT64_C(1000000000000000)
#define LENGTH_MAX_MS INT64_C(1000000000)
enum { TEXT_MAX = 65536 };

/* The event that is read: every getter says for it what is wrong. */
struct event {
    struct chaos_reading *reading;
    const json_t *members;
    const char *name;
    int64_t t_us;
};

static bool wrong_member(const struct event *event, const char *key, const char *expected) {
    const json_t *value = json_object_get(event->members, key);
    char *shown = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    chaos_reading_wrong(event->reading, event->reading->line, "%s: \"%s\" is %.60s; %s is expected", event->name, key,
                        value == NULL   ? "missing"
                        : shown == NULL ? "wrong"
                                        : shown,
                        expected);
    free(shown);
    return false;
}

static bool get_number(const struct event *event, const char *key, int64_t min, int64_t max, int64_t *number) {
    const json_t *value = json_object_get(event->members, key);
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        char expected[96];
        snprintf(expected, sizeof expected, "a number from %" PRId64 " to %" PRId64, min, max);
        return wrong_member(event, key, expected);
    }
    *number = json_integer_value(value);
    return true;
}

/* 0 where it is missing: only runs with fencing tokens tell it, and histories of older versions do
 * not. */
static bool get_optional(const struct event *event, const char *key, int64_t min, int64_t max, int64_t *number) {
    *number = 0;
    return json_object_get(event->members, key) == NULL || get_number(event, key, min, max, number);
}

/* Numbers from 1 become indexes from 0. */
static bool get_index(const struct event *event, const char *key, size_t count, int *index) {
    int64_t number = 0;
    bool worked = get_number(event, key, 1, (int64_t)count, &number);
    *index = (int)number - 1;
    return worked;
}

static bool get_client(const struct event *event, int *client) {
    return get_index(event, "client", event->reading->history->client_count, client);
}

static bool get_resource(const struct event *event, int *resource) {
    return get_index(event, "resource", event->reading->history->resource_count, resource);
}

static bool get_flag(const struct event *event, const char *key, bool *flag) {
    const json_t *value = json_object_get(event->members, key);
    *flag = json_is_true(value);
    return json_is_boolean(value) || wrong_member(event, key, "true or false");
}

/* False where it is missing. */
static bool get_option(const struct event *event, const char *key, bool *flag) {
    *flag = false;
    return json_object_get(event->members, key) == NULL || get_flag(event, key, flag);
}

/* Of min to max bytes; it lives as long as the event. NULL with a sentence. */
static const char *get_text(const struct event *event, const char *key, size_t min, size_t max) {
    const json_t *value = json_object_get(event->members, key);
    if (!json_is_string(value) || json_string_length(value) < min || json_string_length(value) > max) {
        char expected[96];
        snprintf(expected, sizeof expected, "a text of %zu to %zu bytes", min, max);
        wrong_member(event, key, expected);
        return NULL;
    }
    return json_string_value(value);
}

static bool get_token(const struct event *event, char token[CHAOS_TOKEN_SIZE]) {
    const char *text = get_text(event, "token", 1, CHAOS_TOKEN_SIZE - 1);
    if (text != NULL) {
        snprintf(token, CHAOS_TOKEN_SIZE, "%s", text);
    }
    return text != NULL;
}

/* Which of two words it is. */
static bool get_word(const struct event *event, const char *key, const char *first, const char *second,
                     bool *is_second) {
    const char *text = get_text(event, key, 0, TEXT_MAX);
    char expected[64];
    if (text == NULL) {
        return false;
    }
    *is_second = strcmp(text, second) == 0;
    snprintf(expected, sizeof expected, "\"%s\" or \"%s\"", first, second);
    return *is_second || strcmp(text, first) == 0 || wrong_member(event, key, expected);
}

static bool no_memory(const struct event *event) {
    return chaos_reading_wrong(event->reading, event->reading->line, "out of memory");
}

/* A copy that the caller owns. */
static bool copy_text(const struct event *event, const char *key, char **copy) {
    const char *text = get_text(event, key, 0, TEXT_MAX);
    if (text == NULL) {
        return false;
    }
    *copy = strdup(text);
    return *copy != NULL || no_memory(event);
}

/* Likewise; NULL for an empty one. */
static bool copy_words(const struct event *event, const char *key, char **copy) {
    const char *text = get_text(event, key, 0, TEXT_MAX);
    return text != NULL && (text[0] == '\0' || copy_text(event, key, copy));
}

static bool get_list(const struct event *event, const char *key, size_t min, size_t max, const json_t **list) {
    *list = json_object_get(event->members, key);
    if (!json_is_array(*list) || json_array_size(*list) < min || json_array_size(*list) > max) {
        char expected[96];
        snprintf(expected, sizeof expected, "a list of %zu to %zu", min, max);
        return wrong_member(event, key, expected);
    }
    return true;
}

/* Owned copies of a list of texts; *count says how many there are, in any case. */
static bool copy_texts(const struct event *event, const char *key, size_t min, size_t max, char ***texts,
                       size_t *count) {
    const json_t *list;
    if (!get_list(event, key, min, max, &list)) {
        return false;
    }
    size_t size = json_array_size(list);
    *texts = calloc(size + 1, sizeof **texts);
    if (*texts == NULL) {
        return no_memory(event);
    }
    for (*count = 0; *count < size; ++*count) {
        const char *text = json_string_value(json_array_get(list, *count));
        if (text == NULL) {
            return wrong_member(event, key, "a list of texts");
        }
        (*texts)[*count] = strdup(text);
        if ((*texts)[*count] == NULL) {
            return no_memory(event);
        }
    }
    return true;
}

/* A list of numbers from 1 to count, as bits. */
static bool get_set(const struct event *event, const char *key, size_t count, uint64_t *set) {
    const json_t *list;
    if (!get_list(event, key, 0, count, &list)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        json_int_t number = json_integer_value(value); /* 0 for anything else */
        if (number < 1 || number > (json_int_t)count) {
            char expected[64];
            snprintf(expected, sizeof expected, "a list of numbers from 1 to %zu", count);
            return wrong_member(event, key, expected);
        }
        *set |= UINT64_C(1) << (number - 1);
    }
    return true;
}

static struct chaos_half *add_half(const struct event *event, struct chaos_list *list, bool second) {
    struct chaos_half *half = chaos_list_add(event->reading, list, sizeof *half);
    if (half != NULL) {
        half->line = event->reading->line;
        half->second = second;
        half->t_us = event->t_us;
    }
    return half;
}

static bool read_protection(const struct event *event, struct chaos_protection *protection) {
    const char *guard = "off";
    if (json_object_get(event->members, "restart_guard") != NULL &&
        (guard = get_text(event, "restart_guard", 1, TEXT_MAX)) == NULL) {
        return false;
    }
    return (chaos_restart_guard_find(guard, &protection->restart_guard) ||
            wrong_member(event, "restart_guard", "off, observed or strict")) &&
           get_option(event, "fencing", &protection->fencing) &&
           get_option(event, "clock_guard", &protection->clock_guard) &&
           get_option(event, "first_boot", &protection->first_boot) &&
           get_option(event, "no_heal", &protection->no_heal) &&
           get_optional(event, "ttl_max_ms", 0, LENGTH_MAX_MS, &protection->ttl_max_ms) &&
           get_optional(event, "lock_delay_ms", 0, LENGTH_MAX_MS, &protection->lock_delay_ms);
}

static bool take_start(const struct event *event) {
    struct chaos_history *history = event->reading->history;
    int64_t nodes, clients, seed;
    if (event->reading->started) {
        return chaos_reading_wrong(event->reading, event->reading->line,
                                   "a second `start`; each run has a history of its own");
    }
    if (!copy_text(event, "version", &history->version) || !copy_text(event, "command", &history->command) ||
        !copy_text(event, "backend", &history->backend) || !copy_text(event, "experiment", &history->experiment) ||
        !get_number(event, "seed", INT64_MIN, INT64_MAX, &seed) ||
        !get_number(event, "nodes", 1, CHAOS_NODES_MAX, &nodes) ||
        !get_number(event, "clients", 1, CHAOS_CLIENTS_MAX, &clients) ||
        !copy_texts(event, "resources", 1, CHAOS_RESOURCES_MAX, &history->resources, &history->resource_count) ||
        !get_number(event, "ttl_ms", 1, LENGTH_MAX_MS, &history->ttl_ms) ||
        !get_number(event, "node_timeout_ms", 0, LENGTH_MAX_MS, &history->node_timeout_ms) ||
        !get_number(event, "wait_ms", 0, LENGTH_MAX_MS, &history->wait_ms) ||
        !get_flag(event, "breaks_assumptions", &history->breaks_assumptions) ||
        !get_option(event, "memoryless", &history->memoryless) || !read_protection(event, &history->protection)) {
        return false;
    }
    /* JSON's integers have a sign: the upper half comes as negative */
    history->seed = (uint64_t)seed;
    history->node_count = (size_t)nodes;
    history->client_count = (size_t)clients;
    history->start_us = event->t_us;
    event->reading->started = true;
    return true;
}

static bool take_spawn(const struct event *event) {
    struct chaos_half *half = add_half(event, &event->reading->lives, false);
    return half != NULL && get_client(event, &half->life.client) &&
           get_number(event, "pid", 1, INT32_MAX, &half->life.pid);
}

static bool take_exit(const struct event *event) {
    struct chaos_half *half = add_half(event, &event->reading->lives, true);
    return half != NULL && get_client(event, &half->life.client) &&
           get_number(event, "pid", 1, INT32_MAX, &half->life.pid) &&
           get_number(event, "status", -1, 255, &half->life.status) &&
           get_number(event, "signal", 0, 127, &half->life.signal) && get_flag(event, "expected", &half->life.expected);
}

static bool take_fault(const struct event *event) {
    const struct chaos_history *history = event->reading->history;
    struct chaos_half *half = add_half(event, &event->reading->bands, false);
    uint64_t nodes = 0;
    if (half == NULL) {
        return false;
    }
    struct chaos_fault *fault = &half->band.fault;
    const char *kind = get_text(event, "kind", 1, TEXT_MAX);
    if (kind == NULL || !get_number(event, "id", 1, INT64_MAX, &half->band.id) ||
        !get_set(event, "nodes", history->node_count, &nodes) ||
        !get_set(event, "clients", history->client_count, &fault->clients) ||
        !get_number(event, "amount", -LENGTH_MAX_MS * 10, LENGTH_MAX_MS * 10, &fault->amount) ||
        !copy_text(event, "text", &half->band.text) || !copy_words(event, "error", &half->band.error)) {
        return false;
    }
    fault->nodes = (uint32_t)nodes;
    return chaos_fault_kind_find(kind, &fault->kind) || wrong_member(event, "kind", "the name of a kind of faults");
}

static bool take_heal(const struct event *event) {
    struct chaos_half *half = add_half(event, &event->reading->bands, true);
    return half != NULL && get_number(event, "id", 1, INT64_MAX, &half->band.id) &&
           copy_words(event, "error", &half->band.error);
}

static bool take_invoke(const struct event *event) {
    struct chaos_half *half = add_half(event, &event->reading->operations, false);
    bool release;
    if (half == NULL || !get_client(event, &half->operation.client) ||
        !get_number(event, "op", 0, INT64_MAX, &half->operation.op) ||
        !get_word(event, "what", "acquire", "release", &release) || !get_resource(event, &half->operation.resource) ||
        !get_number(event, "deadline", event->t_us, TIME_MAX_US, &half->operation.deadline_us)) {
        return false;
    }
    half->operation.what = release ? CHAOS_RELEASE : CHAOS_ACQUIRE;
    half->operation.invoked_us = event->t_us;
    return true;
}

static bool take_complete(const struct event *event) {
    struct chaos_half *half = add_half(event, &event->reading->operations, true);
    if (half == NULL) {
        return false;
    }
    struct chaos_operation *operation = &half->operation;
    operation->completed_us = event->t_us;
    if (!get_client(event, &operation->client) || !get_number(event, "op", 0, INT64_MAX, &operation->op) ||
        !get_number(event, "attempts", 0, INT32_MAX, &operation->attempts) ||
        get_text(event, "token", 0, CHAOS_TOKEN_SIZE - 1) == NULL ||
        !get_optional(event, "fence", 0, INT64_MAX, &operation->fence) ||
        !copy_words(event, "message", &operation->message)) {
        return false;
    }
    snprintf(operation->token, sizeof operation->token, "%s",
             json_string_value(json_object_get(event->members, "token")));
    const char *result = get_text(event, "result", 1, sizeof operation->result - 1);
    const char *votes = get_text(event, "votes", 0, event->reading->history->node_count);
    if (result == NULL || votes == NULL) {
        return false;
    }
    snprintf(operation->result, sizeof operation->result, "%s", result);
    snprintf(operation->votes, sizeof operation->votes, "%s", votes);
    return true;
}

static bool take_lease(const struct event *event, bool ends) {
    struct chaos_half *half = add_half(event, &event->reading->leases, ends);
    if (half == NULL || !get_client(event, &half->lease.client) || !get_resource(event, &half->lease.resource) ||
        !get_token(event, half->lease.token)) {
        return false;
    }
    return ends ? get_word(event, "how", "lost", "release", &half->lease.released)
                : get_number(event, "until", event->t_us, TIME_MAX_US, &half->lease.until_us);
}

static bool take_claim(const struct event *event) {
    return take_lease(event, false);
}

static bool take_end(const struct event *event) {
    return take_lease(event, true);
}

static struct chaos_half *take_increment(const struct event *event, bool second) {
    struct chaos_half *half = add_half(event, &event->reading->increments, second);
    bool worked = half != NULL && get_client(event, &half->increment.client) &&
                  get_resource(event, &half->increment.resource) && get_token(event, half->increment.token) &&
                  get_number(event, "read", 0, INT64_MAX - 1, &half->increment.read);
    return worked ? half : NULL;
}

static bool take_intent(const struct event *event) {
    struct chaos_half *half = take_increment(event, false);
    return half != NULL && get_optional(event, "fence", 0, INT64_MAX, &half->increment.fence) &&
           get_optional(event, "number", 0, INT64_MAX, &half->increment.read_number);
}

static bool take_done(const struct event *event) {
    struct chaos_half *half = take_increment(event, true);
    return half != NULL && get_number(event, "until", 0, TIME_MAX_US, &half->increment.until_us) &&
           get_optional(event, "number", 0, INT64_MAX, &half->increment.write_number);
}

/* Of a write, it is the end of an increment as well. */
static bool take_refused(const struct event *event) {
    struct chaos_refusal *refusal = chaos_list_add(event->reading, &event->reading->refusals, sizeof *refusal);
    if (refusal == NULL || !get_client(event, &refusal->client) || !get_resource(event, &refusal->resource) ||
        !get_number(event, "fence", 0, INT64_MAX, &refusal->fence) ||
        !get_number(event, "highest", 0, INT64_MAX, &refusal->highest) ||
        !get_word(event, "what", "read", "write", &refusal->write)) {
        return false;
    }
    refusal->at_us = event->t_us;
    struct chaos_half *half = refusal->write ? take_increment(event, true) : NULL;
    if (half != NULL) {
        half->increment.refused = true;
    }
    return half != NULL || !refusal->write;
}

static bool take_tally(const struct event *event) {
    struct chaos_tally *tally = chaos_list_add(event->reading, &event->reading->tallies, sizeof *tally);
    if (tally == NULL) {
        return false;
    }
    tally->at_us = event->t_us;
    return get_client(event, &tally->client) && get_number(event, "pid", 1, INT32_MAX, &tally->pid) &&
           get_number(event, "fenced_fast", 0, INT64_MAX, &tally->fenced_fast) &&
           get_number(event, "fenced_slow", 0, INT64_MAX, &tally->fenced_slow) &&
           get_number(event, "healed", 0, INT64_MAX, &tally->healed) &&
           get_number(event, "quarantines", 0, INT64_MAX, &tally->quarantines) &&
           get_number(event, "clock_jumps", 0, INT64_MAX, &tally->clock_jumps);
}

/* null, ["", 0], [token, pttl] */
static bool read_sight(const json_t *value, struct chaos_sight *sight) {
    const json_t *token = json_array_get(value, 0), *pttl = json_array_get(value, 1);
    if (json_is_null(value)) {
        return true;
    }
    if (json_array_size(value) != 2 || !json_is_string(token) || json_string_length(token) >= CHAOS_TOKEN_SIZE ||
        !json_is_integer(pttl) || json_integer_value(pttl) < -1 || json_integer_value(pttl) > TIME_MAX_US / 1000) {
        return false;
    }
    sight->answered = true;
    snprintf(sight->token, sizeof sight->token, "%s", json_string_value(token));
    sight->pttl_ms = json_integer_value(pttl);
    return true;
}

static bool take_keys(const struct event *event) {
    size_t nodes = event->reading->history->node_count;
    struct chaos_sweep *sweep = chaos_list_add(event->reading, &event->reading->sweeps, sizeof *sweep);
    const json_t *list;
    if (sweep == NULL || !get_number(event, "to", event->t_us, TIME_MAX_US, &sweep->to_us) ||
        !get_resource(event, &sweep->resource) || !get_list(event, "nodes", nodes, nodes, &list)) {
        return false;
    }
    sweep->from_us = event->t_us;
    sweep->nodes = calloc(nodes, sizeof *sweep->nodes);
    if (sweep->nodes == NULL) {
        return no_memory(event);
    }
    for (size_t n = 0; n < nodes; n++) {
        if (!read_sight(json_array_get(list, n), &sweep->nodes[n])) {
            return wrong_member(event, "nodes", "a list of null, [\"\",0] or [token,pttl]");
        }
    }
    return true;
}

static bool take_left(const struct event *event) {
    struct chaos_history *history = event->reading->history;
    if (history->left_told) {
        return chaos_reading_wrong(event->reading, event->reading->line, "a second `left`");
    }
    history->left_told = true;
    return copy_texts(event, "what", 0, TEXT_MAX, &history->left, &history->left_count);
}

static bool take_finish(const struct event *event) {
    struct chaos_history *history = event->reading->history;
    const json_t *list;
    if (history->counters != NULL) {
        return chaos_reading_wrong(event->reading, event->reading->line, "a second `finish`");
    }
    if (!get_list(event, "counters", history->resource_count, history->resource_count, &list)) {
        return false;
    }
    history->counters = calloc(history->resource_count, sizeof *history->counters);
    if (history->counters == NULL) {
        return no_memory(event);
    }
    for (size_t i = 0; i < history->resource_count; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value)) {
            return wrong_member(event, "counters", "a list of numbers");
        }
        history->counters[i] = json_integer_value(value);
    }
    history->finish_us = event->t_us;
    return true;
}

static const struct {
    const char *name;
    bool (*take)(const struct event *event);
} takers[] = {
    {"start", take_start}, {"spawn", take_spawn},   {"exit", take_exit},         {"fault", take_fault},
    {"heal", take_heal},   {"invoke", take_invoke}, {"complete", take_complete}, {"claim", take_claim},
    {"end", take_end},     {"intent", take_intent}, {"done", take_done},         {"keys", take_keys},
    {"left", take_left},   {"finish", take_finish}, {"refused", take_refused},   {"tally", take_tally},
};

bool chaos_reading_is_start(const json_t *event) {
    const char *name = json_string_value(json_object_get(event, "event"));
    return name != NULL && strcmp(name, "start") == 0;
}

bool chaos_reading_event(struct chaos_reading *reading, const json_t *members) {
    struct event event = {.reading = reading, .members = members, .name = "an event"};
    const char *name = get_text(&event, "event", 1, TEXT_MAX);
    for (size_t i = 0; name != NULL && i < sizeof takers / sizeof *takers; i++) {
        if (strcmp(name, takers[i].name) == 0) {
            event.name = takers[i].name;
            return get_number(&event, "t", 0, TIME_MAX_US, &event.t_us) && takers[i].take(&event);
        }
    }
    return name != NULL;
}
