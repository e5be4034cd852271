/* What each event adds to a history. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/history_members.h"

/* 30 years since the boot: sums and differences of times stay far from the end of int64_t. */
#define TIME_MAX_US   INT64_C(1000000000000000)
#define LENGTH_MAX_MS INT64_C(1000000000)

static bool read_protection(struct chaos_reading *reading, struct chaos_protection *protection) {
    const char *guard = "off";
    return (json_object_get(reading->event, "restart_guard") == NULL ||
            chaos_get_text(reading, "restart_guard", 1, CHAOS_TEXT_MAX, &guard)) &&
           (chaos_restart_guard_find(guard, &protection->restart_guard) ||
            chaos_wrong_member(reading, "restart_guard", "off, observed or strict")) &&
           chaos_get_option(reading, "fencing", &protection->fencing) &&
           chaos_get_option(reading, "clock_guard", &protection->clock_guard) &&
           chaos_get_option(reading, "first_boot", &protection->first_boot) &&
           chaos_get_option(reading, "no_heal", &protection->no_heal) &&
           chaos_get_optional(reading, "ttl_max_ms", 0, LENGTH_MAX_MS, &protection->ttl_max_ms) &&
           chaos_get_optional(reading, "lock_delay_ms", 0, LENGTH_MAX_MS, &protection->lock_delay_ms);
}

static bool take_start(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    int64_t nodes, clients, seed;
    if (history->node_count > 0) {
        return chaos_reading_wrong(reading, "a second `start`; each run has a history of its own");
    }
    if (!chaos_copy_text(reading, "version", &history->version) ||
        !chaos_copy_text(reading, "command", &history->command) ||
        !chaos_copy_text(reading, "backend", &history->backend) ||
        !chaos_copy_text(reading, "experiment", &history->experiment) ||
        !chaos_get_number(reading, "seed", INT64_MIN, INT64_MAX, &seed) ||
        !chaos_get_number(reading, "nodes", 1, CHAOS_NODES_MAX, &nodes) ||
        !chaos_get_number(reading, "clients", 1, CHAOS_CLIENTS_MAX, &clients) ||
        !chaos_copy_texts(reading, "resources", 1, CHAOS_RESOURCES_MAX, &history->resources,
                          &history->resource_count) ||
        !chaos_get_number(reading, "ttl_ms", 1, LENGTH_MAX_MS, &history->ttl_ms) ||
        !chaos_get_number(reading, "node_timeout_ms", 0, LENGTH_MAX_MS, &history->node_timeout_ms) ||
        !chaos_get_number(reading, "wait_ms", 0, LENGTH_MAX_MS, &history->wait_ms) ||
        !chaos_get_flag(reading, "breaks_assumptions", &history->breaks_assumptions) ||
        !chaos_get_option(reading, "memoryless", &history->memoryless) ||
        !read_protection(reading, &history->protection)) {
        return false;
    }
    /* JSON's integers have a sign: the upper half comes as negative */
    history->seed = (uint64_t)seed;
    history->node_count = (size_t)nodes;
    history->client_count = (size_t)clients;
    history->start_us = reading->t_us;
    return true;
}

/* The process that the event names, if it runs; NULL if it does not. */
static struct chaos_life *running(struct chaos_reading *reading, const struct chaos_key *key) {
    json_int_t index = chaos_find(reading, key);
    struct chaos_life *life = index < 0 ? NULL : &reading->history->lives[index];
    return life != NULL && life->ended_us == CHAOS_NEVER_US ? life : NULL;
}

static bool get_process(struct chaos_reading *reading, struct chaos_key *key) {
    *key = (struct chaos_key){.kind = "life", .token = ""};
    return chaos_get_client(reading, &key->client) && chaos_get_number(reading, "pid", 1, INT32_MAX, &key->number);
}

static bool take_spawn(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_key key;
    if (!get_process(reading, &key)) {
        return false;
    }
    if (running(reading, &key) != NULL) {
        return chaos_reading_wrong(reading,
                                   "spawn: client %d's process %" PRId64 " was begun and did not end before it",
                                   key.client + 1, key.number);
    }
    struct chaos_life *life = chaos_add(reading, &history->lives, &history->life_count, sizeof *life);
    if (life == NULL) {
        return false;
    }
    life->client = key.client;
    life->pid = key.number;
    life->spawned_us = reading->t_us;
    life->ended_us = CHAOS_NEVER_US;
    return chaos_note(reading, &key, life - history->lives);
}

static bool take_exit(struct chaos_reading *reading) {
    struct chaos_key key;
    struct chaos_life read;
    if (!get_process(reading, &key) || !chaos_get_number(reading, "status", -1, 255, &read.status) ||
        !chaos_get_number(reading, "signal", 0, 127, &read.signal) ||
        !chaos_get_flag(reading, "expected", &read.expected)) {
        return false;
    }
    struct chaos_life *life = running(reading, &key);
    if (life == NULL) {
        return chaos_reading_wrong(reading, "exit: client %d's process %" PRId64 " was not begun before it",
                                   key.client + 1, key.number);
    }
    life->ended_us = reading->t_us;
    life->status = read.status;
    life->signal = read.signal;
    life->expected = read.expected;
    return true;
}

static bool take_fault(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_band *band = chaos_add(reading, &history->bands, &history->band_count, sizeof *band);
    const char *kind, *error;
    uint64_t nodes = 0;
    if (band == NULL || !chaos_get_text(reading, "kind", 1, CHAOS_TEXT_MAX, &kind) ||
        !chaos_get_number(reading, "id", 1, INT64_MAX, &band->id) ||
        !chaos_get_set(reading, "nodes", history->node_count, &nodes) ||
        !chaos_get_set(reading, "clients", history->client_count, &band->fault.clients) ||
        !chaos_get_number(reading, "amount", -LENGTH_MAX_MS * 10, LENGTH_MAX_MS * 10, &band->fault.amount) ||
        !chaos_copy_text(reading, "text", &band->text) ||
        !chaos_get_text(reading, "error", 0, CHAOS_TEXT_MAX, &error) ||
        !chaos_copy_words(reading, error, &band->error)) {
        return false;
    }
    if (!chaos_fault_kind_find(kind, &band->fault.kind)) {
        return chaos_wrong_member(reading, "kind", "the name of a kind of faults");
    }
    band->fault.nodes = (uint32_t)nodes;
    band->from_us = reading->t_us;
    band->to_us = CHAOS_NEVER_US;
    struct chaos_key key = {"fault", 0, band->id, ""};
    if (chaos_find(reading, &key) != CHAOS_UNKNOWN) {
        return chaos_reading_wrong(reading, "fault: there is a fault %" PRId64 " already", band->id);
    }
    return chaos_note(reading, &key, band - history->bands);
}

static bool take_heal(struct chaos_reading *reading) {
    struct chaos_key key = {"fault", 0, 0, ""};
    const char *error;
    if (!chaos_get_number(reading, "id", 1, INT64_MAX, &key.number) ||
        !chaos_get_text(reading, "error", 0, CHAOS_TEXT_MAX, &error)) {
        return false;
    }
    json_int_t index = chaos_find(reading, &key);
    struct chaos_band *band = index < 0 ? NULL : &reading->history->bands[index];
    if (band == NULL || reading->t_us < band->from_us) {
        return chaos_reading_wrong(reading, "heal: fault %" PRId64 " %s", key.number,
                                   band != NULL             ? "began later"
                                   : index == CHAOS_UNKNOWN ? "never began: there is no `fault` of it"
                                                            : "has ended already");
    }
    /* With an error it was given up, not undone. */
    band->to_us = error[0] == '\0' ? reading->t_us : CHAOS_NEVER_US;
    return chaos_note(reading, &key, CHAOS_ENDED) &&
           (band->error != NULL || chaos_copy_words(reading, error, &band->error));
}

static bool take_invoke(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_operation *operation =
        chaos_add(reading, &history->operations, &history->operation_count, sizeof *operation);
    bool release;
    if (operation == NULL || !chaos_get_client(reading, &operation->client) ||
        !chaos_get_number(reading, "op", 0, INT64_MAX, &operation->op) ||
        !chaos_get_word(reading, "what", "acquire", "release", &release) ||
        !chaos_get_resource(reading, &operation->resource) ||
        !chaos_get_number(reading, "deadline", reading->t_us, TIME_MAX_US, &operation->deadline_us)) {
        return false;
    }
    operation->what = release ? CHAOS_RELEASE : CHAOS_ACQUIRE;
    operation->invoked_us = reading->t_us;
    operation->completed_us = CHAOS_NEVER_US;
    struct chaos_key key = {"operation", operation->client, operation->op, ""};
    if (chaos_find(reading, &key) != CHAOS_UNKNOWN) {
        return chaos_reading_wrong(reading, "invoke: client %d has an operation %" PRId64 " already",
                                   operation->client + 1, operation->op);
    }
    return chaos_note(reading, &key, operation - history->operations);
}

static bool take_complete(struct chaos_reading *reading) {
    struct chaos_operation read;
    struct chaos_key key = {"operation", 0, 0, ""};
    const char *message, *votes;
    if (!chaos_get_client(reading, &key.client) || !chaos_get_number(reading, "op", 0, INT64_MAX, &key.number) ||
        !chaos_get_number(reading, "attempts", 0, INT32_MAX, &read.attempts) ||
        !chaos_get_chars(reading, "token", 0, read.token, sizeof read.token) ||
        !chaos_get_optional(reading, "fence", 0, INT64_MAX, &read.fence) ||
        !chaos_get_text(reading, "message", 0, CHAOS_TEXT_MAX, &message) ||
        !chaos_get_chars(reading, "result", 1, read.result, sizeof read.result) ||
        !chaos_get_text(reading, "votes", 0, reading->history->node_count, &votes)) {
        return false;
    }
    json_int_t index = chaos_find(reading, &key);
    struct chaos_operation *operation = index < 0 ? NULL : &reading->history->operations[index];
    if (operation == NULL || operation->completed_us != CHAOS_NEVER_US || reading->t_us < operation->invoked_us) {
        return chaos_reading_wrong(reading, "complete: client %d's operation %" PRId64 " %s", key.client + 1,
                                   key.number,
                                   operation == NULL ? "was never invoked: there is no `invoke` of it"
                                   : operation->completed_us != CHAOS_NEVER_US ? "is complete already"
                                                                               : "was invoked later");
    }
    operation->completed_us = reading->t_us;
    operation->attempts = read.attempts;
    operation->fence = read.fence;
    memcpy(operation->result, read.result, sizeof read.result);
    memcpy(operation->token, read.token, sizeof read.token);
    snprintf(operation->votes, sizeof operation->votes, "%s", votes);
    return chaos_copy_words(reading, message, &operation->message);
}

/* The lease of the event's claim or end, which is the first of its token if `begins` is true. */
static bool get_lease(struct chaos_reading *reading, const struct chaos_lease *read, bool begins,
                      struct chaos_lease **lease) {
    struct chaos_history *history = reading->history;
    struct chaos_key key = {"lease", 0, 0, read->token};
    json_int_t index = chaos_find(reading, &key);
    if (index == CHAOS_UNKNOWN && !begins) {
        return chaos_reading_wrong(reading, "end: there is no `claim` of token %s before it", read->token);
    }
    if (index == CHAOS_UNKNOWN) {
        *lease = chaos_add(reading, &history->leases, &history->lease_count, sizeof **lease);
        if (*lease == NULL) {
            return false;
        }
        **lease = *read;
        (*lease)->from_us = reading->t_us;
        (*lease)->ended_us = CHAOS_NEVER_US;
        return chaos_note(reading, &key, *lease - history->leases);
    }
    *lease = &history->leases[index];
    if ((*lease)->client != read->client || (*lease)->resource != read->resource) {
        return chaos_reading_wrong(reading, "%s: token %s is of client %d and resource %d", reading->event_name,
                                   read->token, (*lease)->client + 1, (*lease)->resource + 1);
    }
    return (*lease)->ended_us == CHAOS_NEVER_US ||
           chaos_reading_wrong(reading, "%s: token %s has an `end` before it", reading->event_name, read->token);
}

static bool read_lease(struct chaos_reading *reading, struct chaos_lease *read) {
    return chaos_get_client(reading, &read->client) && chaos_get_resource(reading, &read->resource) &&
           chaos_get_chars(reading, "token", 1, read->token, sizeof read->token);
}

static bool take_claim(struct chaos_reading *reading) {
    struct chaos_lease read = {0}, *lease;
    int64_t until_us;
    if (!read_lease(reading, &read) || !chaos_get_number(reading, "until", reading->t_us, TIME_MAX_US, &until_us) ||
        !get_lease(reading, &read, true, &lease)) {
        return false;
    }
    /* One that reaches no further than the last says nothing new. */
    if (lease->claim_count > 0 && until_us <= lease->until_us) {
        return true;
    }
    struct chaos_claim *claim = chaos_add(reading, &lease->claims, &lease->claim_count, sizeof *claim);
    if (claim != NULL) {
        *claim = (struct chaos_claim){reading->t_us, until_us};
        lease->until_us = until_us;
    }
    return claim != NULL;
}

static bool take_end(struct chaos_reading *reading) {
    struct chaos_lease read = {0}, *lease;
    if (!read_lease(reading, &read) || !chaos_get_word(reading, "how", "lost", "release", &read.released) ||
        !get_lease(reading, &read, false, &lease)) {
        return false;
    }
    lease->ended_us = reading->t_us;
    lease->released = read.released;
    return true;
}

static bool read_increment(struct chaos_reading *reading, struct chaos_increment *read) {
    return chaos_get_client(reading, &read->client) && chaos_get_resource(reading, &read->resource) &&
           chaos_get_chars(reading, "token", 1, read->token, sizeof read->token) &&
           chaos_get_number(reading, "read", 0, INT64_MAX - 1, &read->read);
}

static bool take_intent(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_increment *increment =
        chaos_add(reading, &history->increments, &history->increment_count, sizeof *increment);
    if (increment == NULL || !read_increment(reading, increment) ||
        !chaos_get_optional(reading, "fence", 0, INT64_MAX, &increment->fence) ||
        !chaos_get_optional(reading, "number", 0, INT64_MAX, &increment->read_number)) {
        return false;
    }
    increment->intent_us = reading->t_us;
    increment->done_us = CHAOS_NEVER_US;
    struct chaos_key key = {"increment", increment->client, 0, increment->token};
    return chaos_note(reading, &key, increment - history->increments);
}

/* The increment under way, which the event ends; NULL with a sentence. A client does one thing at a
 * time: it can only be the last. */
static struct chaos_increment *end_increment(struct chaos_reading *reading, const struct chaos_increment *read) {
    struct chaos_key key = {"increment", read->client, 0, read->token};
    json_int_t index = chaos_find(reading, &key);
    struct chaos_increment *last = index < 0 ? NULL : &reading->history->increments[index];
    if (last != NULL && last->resource == read->resource && last->read == read->read &&
        last->done_us == CHAOS_NEVER_US && !last->refused) {
        return last;
    }
    chaos_reading_wrong(reading,
                        "%s: there is no `intent` of client %d, token %s, to write the successor of %" PRId64
                        " right before it",
                        reading->event_name, read->client + 1, read->token, read->read);
    return NULL;
}

static bool take_done(struct chaos_reading *reading) {
    struct chaos_increment read, *increment;
    if (!read_increment(reading, &read) || !chaos_get_number(reading, "until", 0, TIME_MAX_US, &read.until_us) ||
        !chaos_get_optional(reading, "number", 0, INT64_MAX, &read.write_number) ||
        (increment = end_increment(reading, &read)) == NULL) {
        return false;
    }
    increment->done_us = reading->t_us;
    increment->until_us = read.until_us;
    increment->write_number = read.write_number;
    return true;
}

/* Of a write, it is the end of an increment as well. */
static bool take_refused(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_refusal *refusal = chaos_add(reading, &history->refusals, &history->refusal_count, sizeof *refusal);
    if (refusal == NULL || !chaos_get_client(reading, &refusal->client) ||
        !chaos_get_resource(reading, &refusal->resource) ||
        !chaos_get_number(reading, "fence", 0, INT64_MAX, &refusal->fence) ||
        !chaos_get_number(reading, "highest", 0, INT64_MAX, &refusal->highest) ||
        !chaos_get_word(reading, "what", "read", "write", &refusal->write)) {
        return false;
    }
    refusal->at_us = reading->t_us;
    struct chaos_increment read, *increment = NULL;
    if (refusal->write && read_increment(reading, &read) && (increment = end_increment(reading, &read)) != NULL) {
        increment->refused = true;
    }
    return increment != NULL || !refusal->write;
}

static bool take_tally(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_tally *tally = chaos_add(reading, &history->tallies, &history->tally_count, sizeof *tally);
    if (tally == NULL) {
        return false;
    }
    tally->at_us = reading->t_us;
    return chaos_get_client(reading, &tally->client) && chaos_get_number(reading, "pid", 1, INT32_MAX, &tally->pid) &&
           chaos_get_number(reading, "fenced_fast", 0, INT64_MAX, &tally->fenced_fast) &&
           chaos_get_number(reading, "fenced_slow", 0, INT64_MAX, &tally->fenced_slow) &&
           chaos_get_number(reading, "healed", 0, INT64_MAX, &tally->healed) &&
           chaos_get_number(reading, "quarantines", 0, INT64_MAX, &tally->quarantines) &&
           chaos_get_number(reading, "clock_jumps", 0, INT64_MAX, &tally->clock_jumps);
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

static bool take_keys(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    size_t nodes = history->node_count;
    struct chaos_sweep *sweep = chaos_add(reading, &history->sweeps, &history->sweep_count, sizeof *sweep);
    const json_t *list;
    if (sweep == NULL || !chaos_get_number(reading, "to", reading->t_us, TIME_MAX_US, &sweep->to_us) ||
        !chaos_get_resource(reading, &sweep->resource) || !chaos_get_list(reading, "nodes", nodes, nodes, &list)) {
        return false;
    }
    sweep->from_us = reading->t_us;
    sweep->nodes = calloc(nodes, sizeof *sweep->nodes);
    if (sweep->nodes == NULL) {
        return chaos_no_memory(reading);
    }
    for (size_t n = 0; n < nodes; n++) {
        if (!read_sight(json_array_get(list, n), &sweep->nodes[n])) {
            return chaos_wrong_member(reading, "nodes", "a list of null, [\"\",0] or [token,pttl]");
        }
    }
    return true;
}

static bool take_left(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    if (history->left_told) {
        return chaos_reading_wrong(reading, "a second `left`");
    }
    history->left_told = true;
    return chaos_copy_texts(reading, "what", 0, CHAOS_TEXT_MAX, &history->left, &history->left_count);
}

static bool take_finish(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    const json_t *list;
    if (history->counters != NULL) {
        return chaos_reading_wrong(reading, "a second `finish`");
    }
    if (!chaos_get_list(reading, "counters", history->resource_count, history->resource_count, &list)) {
        return false;
    }
    history->counters = calloc(history->resource_count, sizeof *history->counters);
    if (history->counters == NULL) {
        return chaos_no_memory(reading);
    }
    for (size_t i = 0; i < history->resource_count; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value)) {
            return chaos_wrong_member(reading, "counters", "a list of numbers");
        }
        history->counters[i] = json_integer_value(value);
    }
    history->finish_us = reading->t_us;
    return true;
}

/* Their order is said in history_read.h. */
static const struct taker {
    const char *name;
    bool (*take)(struct chaos_reading *reading);
    int pass, rank;
} takers[] = {
    {"start", take_start, 0, 0},     {"fault", take_fault, 1, 0},   {"invoke", take_invoke, 1, 0},
    {"spawn", take_spawn, 2, 0},     {"claim", take_claim, 2, 0},   {"intent", take_intent, 2, 0},
    {"keys", take_keys, 2, 0},       {"tally", take_tally, 2, 0},   {"left", take_left, 2, 0},
    {"exit", take_exit, 2, 1},       {"finish", take_finish, 2, 0}, {"complete", take_complete, 2, 1},
    {"heal", take_heal, 2, 1},       {"end", take_end, 2, 1},       {"done", take_done, 2, 1},
    {"refused", take_refused, 2, 1},
};

/* The taker of an event that is known, and its time. False with a sentence. */
static bool look(struct chaos_reading *reading, const struct taker **taker) {
    const char *name;
    *taker = NULL;
    reading->event_name = "an event";
    if (!chaos_get_text(reading, "event", 1, CHAOS_TEXT_MAX, &name)) {
        return false;
    }
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (strcmp(name, takers[i].name) == 0) {
            *taker = &takers[i];
            reading->event_name = takers[i].name;
            return chaos_get_number(reading, "t", 0, TIME_MAX_US, &reading->t_us);
        }
    }
    return true;
}

bool chaos_reading_place(struct chaos_reading *reading, struct chaos_line *line, bool *known) {
    const struct taker *taker;
    bool worked = look(reading, &taker);
    *known = taker != NULL;
    if (*known) {
        line->pass = taker->pass;
        line->t_us = reading->t_us;
        line->rank = taker->rank;
    }
    return worked;
}

bool chaos_reading_event(struct chaos_reading *reading) {
    const struct taker *taker;
    return look(reading, &taker) && taker->take(reading);
}
