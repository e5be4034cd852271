/* What each event adds to a history. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "faults/lists.h"
#include "history/history_read.h"

#define LENGTH_MAX_MS INT64_C(1000000000)

/*
 * Most things are told by two events, a lease by two or more. What the first of them began is found
 * again by such a key: the kind of thing, and whatever tells one from the other.
 */
struct key {
    char text[96];
};

static struct key key_of(const char *kind, int client, int64_t number, const char *token) {
    struct key key;
    snprintf(key.text, sizeof key.text, "%s %d %" PRId64 " %s", kind, client, number, token);
    return key;
}

enum { UNKNOWN = -1, ENDED = -2 };

/* Its index in the history's list, UNKNOWN or ENDED. */
static json_int_t find(const struct chaos_reading *reading, const struct key *key) {
    const json_t *index = json_object_get(reading->known, key->text);
    return index == NULL ? UNKNOWN : json_integer_value(index);
}

/* The item itself; NULL for none. */
static void *find_in(const struct chaos_reading *reading, const struct key *key, void *list, size_t size) {
    json_int_t index = find(reading, key);
    return index < 0 ? NULL : (char *)list + (size_t)index * size;
}

static void note(struct chaos_reading *reading, const struct key *key, json_int_t index) {
    if (json_object_set_new(reading->known, key->text, json_integer(index)) != 0) {
        chaos_no_memory(sizeof *key);
    }
}

/* Adds what an event begins to its list, to be found by the key. */
static void *begin(struct chaos_reading *reading, const struct key *key, void *list, size_t *count, const void *item,
                   size_t size) {
    note(reading, key, (json_int_t)*count);
    return chaos_add(list, count, item, size);
}

/* A copy that the caller owns; NULL for an empty text. */
static char *copy_words(struct chaos_reading *reading, const char *key) {
    const char *text = chaos_get_text(reading, key, 0, CHAOS_TEXT_MAX);
    return text[0] == '\0' ? NULL : chaos_copy(text);
}

static void take_start(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    const char *guard = "off";
    if (history->node_count > 0) {
        chaos_reading_wrong(reading, "a second `start`; each run has a history of its own");
        return;
    }
    history->version = chaos_copy(chaos_get_text(reading, "version", 0, CHAOS_TEXT_MAX));
    history->command = chaos_copy(chaos_get_text(reading, "command", 0, CHAOS_TEXT_MAX));
    history->backend = chaos_copy(chaos_get_text(reading, "backend", 0, CHAOS_TEXT_MAX));
    history->experiment = chaos_copy(chaos_get_text(reading, "experiment", 0, CHAOS_TEXT_MAX));
    /* JSON's integers have a sign: the upper half comes as negative */
    history->seed = (uint64_t)chaos_get_number(reading, "seed", INT64_MIN, INT64_MAX);
    history->node_count = (size_t)chaos_get_number(reading, "nodes", 1, CHAOS_NODES_MAX);
    history->client_count = (size_t)chaos_get_number(reading, "clients", 1, CHAOS_CLIENTS_MAX);
    history->resources = chaos_copy_texts(reading, "resources", 1, CHAOS_RESOURCES_MAX, &history->resource_count);
    history->start_us = reading->t_us;
    history->ttl_ms = chaos_get_number(reading, "ttl_ms", 1, LENGTH_MAX_MS);
    history->node_timeout_ms = chaos_get_number(reading, "node_timeout_ms", 0, LENGTH_MAX_MS);
    history->wait_ms = chaos_get_number(reading, "wait_ms", 0, LENGTH_MAX_MS);
    history->readers = chaos_get_optional(reading, "readers", 100);
    history->breaks_assumptions = chaos_get_flag(reading, "breaks_assumptions");
    history->memoryless = chaos_get_option(reading, "memoryless");
    history->polls = chaos_get_option(reading, "polls");
    history->tls = chaos_get_option(reading, "tls");
    history->protection = (struct chaos_protection){
        .fencing = chaos_get_option(reading, "fencing"),
        .clock_guard = chaos_get_option(reading, "clock_guard"),
        .first_boot = chaos_get_option(reading, "first_boot"),
        .no_heal = chaos_get_option(reading, "no_heal"),
        .ttl_max_ms = chaos_get_optional(reading, "ttl_max_ms", LENGTH_MAX_MS),
        .lock_delay_ms = chaos_get_optional(reading, "lock_delay_ms", LENGTH_MAX_MS),
    };
    if (json_object_get(reading->event, "restart_guard") != NULL) {
        guard = chaos_get_text(reading, "restart_guard", 1, CHAOS_TEXT_MAX);
    }
    if (!chaos_restart_guard_find(guard, &history->protection.restart_guard)) {
        chaos_wrong_member(reading, "restart_guard", "off, observed or strict");
    }
}

/* The process that the event names, under which key; NULL where it does not run. */
static struct chaos_life *get_life(struct chaos_reading *reading, struct chaos_life *told, struct key *key) {
    told->client = chaos_get_client(reading);
    told->pid = chaos_get_number(reading, "pid", 1, INT32_MAX);
    *key = key_of("life", told->client, told->pid, "");
    struct chaos_life *life = find_in(reading, key, reading->history->lives, sizeof *life);
    return life != NULL && life->ended_us == CHAOS_NEVER_US ? life : NULL;
}

/* Only clients that were told of other nodes or another quorum say so. */
static struct chaos_setup get_setup(struct chaos_reading *reading) {
    size_t count = reading->history->node_count;
    struct chaos_setup setup = chaos_setup_default(count);
    if (json_object_get(reading->event, "quorum") != NULL) {
        setup.nodes = (uint32_t)chaos_get_set(reading, "nodes", count);
        setup.quorum = (size_t)chaos_get_number(reading, "quorum", (int64_t)chaos_count_bits(setup.nodes) / 2 + 1,
                                                (int64_t)chaos_count_bits(setup.nodes));
    }
    return setup;
}

static void take_spawn(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_life life = {.spawned_us = reading->t_us, .ended_us = CHAOS_NEVER_US, .setup = get_setup(reading)};
    struct key key;
    if (get_life(reading, &life, &key) != NULL) {
        chaos_reading_wrong(reading, "spawn: client %d's process %" PRId64 " was begun and did not end before it",
                            life.client + 1, life.pid);
    }
    begin(reading, &key, &history->lives, &history->life_count, &life, sizeof life);
}

static void take_exit(struct chaos_reading *reading) {
    struct chaos_life told = {.ended_us = reading->t_us,
                              .status = chaos_get_number(reading, "status", -1, 255),
                              .signal = chaos_get_number(reading, "signal", 0, 127),
                              .expected = chaos_get_flag(reading, "expected")};
    struct key key;
    struct chaos_life *life = get_life(reading, &told, &key);
    if (life == NULL) {
        chaos_reading_wrong(reading, "exit: client %d's process %" PRId64 " was not begun before it", told.client + 1,
                            told.pid);
        return;
    }
    told.spawned_us = life->spawned_us;
    told.setup = life->setup;
    *life = told;
}

static void take_fault(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_band band = {
        .id = chaos_get_number(reading, "id", 1, INT64_MAX),
        .fault.nodes = (uint32_t)chaos_get_set(reading, "nodes", history->node_count),
        .fault.clients = chaos_get_set(reading, "clients", history->client_count),
        .fault.amount = chaos_get_number(reading, "amount", -LENGTH_MAX_MS * 10, LENGTH_MAX_MS * 10),
        .from_us = reading->t_us,
        .to_us = CHAOS_NEVER_US,
        .text = chaos_copy(chaos_get_text(reading, "text", 0, CHAOS_TEXT_MAX)),
        .error = copy_words(reading, "error"),
    };
    struct key key = key_of("fault", 0, band.id, "");
    if (!chaos_fault_kind_find(chaos_get_text(reading, "kind", 1, CHAOS_TEXT_MAX), &band.fault.kind)) {
        chaos_wrong_member(reading, "kind", "the name of a kind of faults");
    }
    if (find(reading, &key) != UNKNOWN) {
        chaos_reading_wrong(reading, "fault: there is a fault %" PRId64 " already", band.id);
    }
    begin(reading, &key, &history->bands, &history->band_count, &band, sizeof band);
}

static void take_heal(struct chaos_reading *reading) {
    int64_t id = chaos_get_number(reading, "id", 1, INT64_MAX);
    bool given_up = chaos_get_text(reading, "error", 0, CHAOS_TEXT_MAX)[0] != '\0';
    struct key key = key_of("fault", 0, id, "");
    struct chaos_band *band = find_in(reading, &key, reading->history->bands, sizeof *band);
    if (band == NULL || reading->t_us < band->from_us) {
        chaos_reading_wrong(reading, "heal: fault %" PRId64 " %s", id,
                            band != NULL                     ? "began later"
                            : find(reading, &key) == UNKNOWN ? "never began: there is no `fault` of it"
                                                             : "has ended already");
        return;
    }
    band->to_us = given_up ? CHAOS_NEVER_US : reading->t_us;
    band->error = band->error == NULL ? copy_words(reading, "error") : band->error;
    note(reading, &key, ENDED);
}

/* Told of what is shared; histories of older versions have none. */
static bool get_shared(struct chaos_reading *reading) {
    return json_object_get(reading->event, "mode") != NULL && chaos_get_word(reading, "mode", "exclusive", "shared");
}

static void take_invoke(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_operation operation = {
        .client = chaos_get_client(reading),
        .resource = chaos_get_resource(reading),
        .what = chaos_get_word(reading, "what", "acquire", "release") ? CHAOS_RELEASE : CHAOS_ACQUIRE,
        .shared = get_shared(reading),
        .op = chaos_get_number(reading, "op", 0, INT64_MAX),
        .invoked_us = reading->t_us,
        .deadline_us = chaos_get_number(reading, "deadline", reading->t_us, CHAOS_TIME_MAX_US),
        .completed_us = CHAOS_NEVER_US,
    };
    struct key key = key_of("operation", operation.client, operation.op, "");
    if (find(reading, &key) != UNKNOWN) {
        chaos_reading_wrong(reading, "invoke: client %d has an operation %" PRId64 " already", operation.client + 1,
                            operation.op);
    }
    begin(reading, &key, &history->operations, &history->operation_count, &operation, sizeof operation);
}

static void take_complete(struct chaos_reading *reading) {
    struct chaos_operation told = {.client = chaos_get_client(reading),
                                   .op = chaos_get_number(reading, "op", 0, INT64_MAX),
                                   .attempts = chaos_get_number(reading, "attempts", 0, INT32_MAX),
                                   .fence = chaos_get_optional(reading, "fence", INT64_MAX),
                                   .ticket = chaos_get_optional(reading, "ticket", INT64_MAX)};
    /* It must be there, whoever began the operation. */
    (void)chaos_get_text(reading, "message", 0, CHAOS_TEXT_MAX);
    chaos_get_chars(reading, "token", 0, told.token, sizeof told.token);
    chaos_get_chars(reading, "result", 1, told.result, sizeof told.result);
    chaos_get_chars(reading, "votes", 0, told.votes, reading->history->node_count + 1);
    struct key key = key_of("operation", told.client, told.op, "");
    struct chaos_operation *begun = find_in(reading, &key, reading->history->operations, sizeof *begun);
    if (begun == NULL || begun->completed_us != CHAOS_NEVER_US || reading->t_us < begun->invoked_us) {
        chaos_reading_wrong(reading, "complete: client %d's operation %" PRId64 " %s", told.client + 1, told.op,
                            begun == NULL                           ? "was never invoked: there is no `invoke` of it"
                            : begun->completed_us != CHAOS_NEVER_US ? "is complete already"
                                                                    : "was invoked later");
        return;
    }
    told.resource = begun->resource;
    told.what = begun->what;
    told.shared = begun->shared;
    told.invoked_us = begun->invoked_us;
    told.deadline_us = begun->deadline_us;
    told.completed_us = reading->t_us;
    told.message = copy_words(reading, "message");
    *begun = told;
}

/* The lease that the event goes on with; NULL if its token is a new one. */
static struct chaos_lease *find_lease(struct chaos_reading *reading, const struct chaos_lease *told,
                                      const struct key *key) {
    struct chaos_lease *lease = find_in(reading, key, reading->history->leases, sizeof *lease);
    if (lease != NULL && (lease->client != told->client || lease->resource != told->resource)) {
        chaos_reading_wrong(reading, "%s: token %s is of client %d and resource %d", reading->event_name, told->token,
                            lease->client + 1, lease->resource + 1);
    } else if (lease != NULL && lease->ended_us != CHAOS_NEVER_US) {
        chaos_reading_wrong(reading, "%s: token %s has an `end` before it", reading->event_name, told->token);
    }
    return lease;
}

static struct chaos_lease get_lease(struct chaos_reading *reading) {
    struct chaos_lease told = {.client = chaos_get_client(reading),
                               .resource = chaos_get_resource(reading),
                               .from_us = reading->t_us,
                               .ended_us = CHAOS_NEVER_US};
    chaos_get_chars(reading, "token", 1, told.token, sizeof told.token);
    return told;
}

static void take_claim(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_lease told = get_lease(reading);
    told.shared = get_shared(reading);
    struct chaos_claim claim = {reading->t_us, chaos_get_number(reading, "until", reading->t_us, CHAOS_TIME_MAX_US)};
    struct key key = key_of("lease", 0, 0, told.token);
    struct chaos_lease *lease = find_lease(reading, &told, &key);
    if (lease == NULL) {
        lease = begin(reading, &key, &history->leases, &history->lease_count, &told, sizeof told);
    }
    /* One that reaches no further than the last says nothing new. */
    if (lease->claim_count == 0 || claim.until_us > lease->until_us) {
        lease->until_us = claim.until_us;
        chaos_add(&lease->claims, &lease->claim_count, &claim, sizeof claim);
    }
}

static void take_end(struct chaos_reading *reading) {
    struct chaos_lease told = get_lease(reading);
    bool released = chaos_get_word(reading, "how", "lost", "release");
    struct key key = key_of("lease", 0, 0, told.token);
    struct chaos_lease *lease = find_lease(reading, &told, &key);
    if (lease == NULL) {
        chaos_reading_wrong(reading, "end: there is no `claim` of token %s before it", told.token);
        return;
    }
    lease->ended_us = reading->t_us;
    lease->released = released;
}

static void take_read(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_read read = {.client = chaos_get_client(reading),
                              .resource = chaos_get_resource(reading),
                              .count = chaos_get_number(reading, "read", 0, INT64_MAX),
                              .at_us = reading->t_us,
                              .until_us = chaos_get_number(reading, "until", 0, CHAOS_TIME_MAX_US),
                              .fence = chaos_get_optional(reading, "fence", INT64_MAX),
                              .number = chaos_get_optional(reading, "number", INT64_MAX)};
    chaos_get_chars(reading, "token", 1, read.token, sizeof read.token);
    chaos_add(&history->reads, &history->read_count, &read, sizeof read);
}

static struct chaos_increment get_increment(struct chaos_reading *reading) {
    struct chaos_increment told = {.client = chaos_get_client(reading),
                                   .resource = chaos_get_resource(reading),
                                   .read = chaos_get_number(reading, "read", 0, INT64_MAX - 1),
                                   .intent_us = reading->t_us,
                                   .done_us = CHAOS_NEVER_US};
    chaos_get_chars(reading, "token", 1, told.token, sizeof told.token);
    return told;
}

static void take_intent(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_increment increment = get_increment(reading);
    struct key key = key_of("increment", increment.client, 0, increment.token);
    increment.fence = chaos_get_optional(reading, "fence", INT64_MAX);
    increment.read_number = chaos_get_optional(reading, "number", INT64_MAX);
    begin(reading, &key, &history->increments, &history->increment_count, &increment, sizeof increment);
}

/* The increment under way, which the event ends; NULL with a sentence. A client does one thing at a
 * time: it can only be the last. */
static struct chaos_increment *end_increment(struct chaos_reading *reading) {
    struct chaos_increment told = get_increment(reading);
    struct key key = key_of("increment", told.client, 0, told.token);
    struct chaos_increment *last = find_in(reading, &key, reading->history->increments, sizeof *last);
    if (last != NULL && last->resource == told.resource && last->read == told.read && last->done_us == CHAOS_NEVER_US &&
        !last->refused) {
        return last;
    }
    chaos_reading_wrong(reading,
                        "%s: there is no `intent` of client %d, token %s, to write the successor of %" PRId64
                        " right before it",
                        reading->event_name, told.client + 1, told.token, told.read);
    return NULL;
}

static void take_done(struct chaos_reading *reading) {
    struct chaos_increment *increment = end_increment(reading);
    if (increment != NULL) {
        increment->done_us = reading->t_us;
        increment->until_us = chaos_get_number(reading, "until", 0, CHAOS_TIME_MAX_US);
        increment->write_number = chaos_get_optional(reading, "number", INT64_MAX);
    }
}

/* Of a write, it is the end of an increment as well. */
static void take_refused(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_refusal refusal = {.client = chaos_get_client(reading),
                                    .resource = chaos_get_resource(reading),
                                    .at_us = reading->t_us,
                                    .fence = chaos_get_number(reading, "fence", 0, INT64_MAX),
                                    .highest = chaos_get_number(reading, "highest", 0, INT64_MAX),
                                    .write = chaos_get_word(reading, "what", "read", "write")};
    chaos_add(&history->refusals, &history->refusal_count, &refusal, sizeof refusal);
    struct chaos_increment *increment = refusal.write ? end_increment(reading) : NULL;
    if (increment != NULL) {
        increment->refused = true;
    }
}

static void take_tally(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    struct chaos_tally tally = {.client = chaos_get_client(reading),
                                .pid = chaos_get_number(reading, "pid", 1, INT32_MAX),
                                .at_us = reading->t_us,
                                .fenced_fast = chaos_get_number(reading, "fenced_fast", 0, INT64_MAX),
                                .fenced_slow = chaos_get_number(reading, "fenced_slow", 0, INT64_MAX),
                                .healed = chaos_get_number(reading, "healed", 0, INT64_MAX),
                                .quarantines = chaos_get_number(reading, "quarantines", 0, INT64_MAX),
                                .clock_jumps = chaos_get_number(reading, "clock_jumps", 0, INT64_MAX)};
    chaos_add(&history->tallies, &history->tally_count, &tally, sizeof tally);
}

static void take_left(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    if (history->left_told) {
        chaos_reading_wrong(reading, "a second `left`");
        return;
    }
    history->left_told = true;
    history->left = chaos_copy_texts(reading, "what", 0, CHAOS_TEXT_MAX, &history->left_count);
}

static void take_finish(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    const json_t *list = chaos_get_list(reading, "counters", history->resource_count, history->resource_count);
    if (history->counters != NULL) {
        chaos_reading_wrong(reading, "a second `finish`");
        return;
    }
    history->finish_us = reading->t_us;
    history->counters = chaos_allocate(history->resource_count, sizeof *history->counters);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_integer(value)) {
            chaos_wrong_member(reading, "counters", "a list of numbers");
        }
        history->counters[i] = json_integer_value(value);
    }
}

/* Their order is said in history_read.h. */
static const struct taker {
    const char *name;
    void (*take)(struct chaos_reading *reading);
    int pass, rank;
} takers[] = {
    {"start", take_start, 0, 0},     {"fault", take_fault, 1, 0},   {"invoke", take_invoke, 1, 0},
    {"spawn", take_spawn, 2, 0},     {"claim", take_claim, 2, 0},   {"intent", take_intent, 2, 0},
    {"keys", chaos_take_keys, 2, 0}, {"tally", take_tally, 2, 0},   {"left", take_left, 2, 0},
    {"exit", take_exit, 2, 1},       {"finish", take_finish, 2, 0}, {"complete", take_complete, 2, 1},
    {"heal", take_heal, 2, 1},       {"end", take_end, 2, 1},       {"done", take_done, 2, 1},
    {"refused", take_refused, 2, 1}, {"read", take_read, 2, 0},
};

/* The taker of an event, and its time. NULL for one that is not known. */
static const struct taker *look(struct chaos_reading *reading) {
    reading->event_name = "an event";
    reading->event_name = chaos_get_text(reading, "event", 1, CHAOS_TEXT_MAX);
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (strcmp(reading->event_name, takers[i].name) == 0) {
            reading->t_us = chaos_get_number(reading, "t", 0, CHAOS_TIME_MAX_US);
            return &takers[i];
        }
    }
    return NULL;
}

bool chaos_reading_place(struct chaos_reading *reading, struct chaos_line *line) {
    const struct taker *taker = look(reading);
    if (taker != NULL) {
        line->pass = taker->pass;
        line->t_us = reading->t_us;
        line->rank = taker->rank;
    }
    return taker != NULL;
}

void chaos_reading_event(struct chaos_reading *reading) {
    look(reading)->take(reading);
}
