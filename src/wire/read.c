/* What the reply to each kind of request means. */
#include "wire/read.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/holder.h"
#include "core/fence.h"
#include "core/number.h"
#include "wire/cause.h"
#include "wire/error.h"
#include "wire/page.h"

/* The latest time to accept from a node: in the year 2255. It still fits into nanoseconds. */
#define SECONDS_MAX 9000000000
/* The longest time to live to accept, in ms: callers may multiply it by 1000, and JSON readers keep
 * it exact (2^53 - 1; 285,000 years). */
#define HOLDER_TTL_MS_MAX INT64_C(9007199254740991)

static const struct redlock_text key_missing = {.string = "the key is missing"};
static const struct redlock_text not_ours = {.string = "the key is missing, or held under another token"};
static const struct redlock_text not_below = {.string = "its fencing counter is not below the token"};
static const struct redlock_text queued_free = {.string = "queued for a free lock"};
static const struct redlock_text no_script = {.string = "the node does not know the script",
                                              .cause = REDLOCK_CAUSE_NOSCRIPT};

void redlock_read_error(const struct redlock_reply_value *error, const char *password, struct redlock_answer *answer) {
    const enum redlock_cause cause = redlock_wire_cause(error);
    answer->vote = REDLOCK_VOTE_FAILED;
    if (cause == REDLOCK_CAUSE_NOSCRIPT) {
        answer->no_script = true;
        answer->text = redlock_text_constant(&no_script);
        return;
    }
    char text[REDLOCK_WIRE_ERROR_SIZE];
    if (redlock_wire_error(error, password, text) == 0) {
        (void)snprintf(text, sizeof text, "an error without a text");
    }
    answer->text = redlock_text_new(cause, "%s", text);
}

void redlock_read_unexpected(const struct redlock_reply *reply, struct redlock_answer *answer) {
    static const char *const names[] = {[REDLOCK_REPLY_NONE] = "nothing",    [REDLOCK_REPLY_STATUS] = "a status",
                                        [REDLOCK_REPLY_ERROR] = "an error",  [REDLOCK_REPLY_INTEGER] = "an integer",
                                        [REDLOCK_REPLY_STRING] = "a string", [REDLOCK_REPLY_NIL] = "nil",
                                        [REDLOCK_REPLY_ARRAY] = "an array",  [REDLOCK_REPLY_OTHER] = "another type"};
    answer->text =
        redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE, "the node answered out of protocol (%s); is it a Redis server?",
                         names[reply->value.type]);
}

void redlock_read_set(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *value = &reply->value;
    if (redlock_reply_is_ok(value)) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else if (value->type == REDLOCK_REPLY_NIL) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_text_constant(&redlock_holder_other);
    } else {
        redlock_read_unexpected(reply, answer);
    }
}

/* Of two replies, nil says nothing alone: redlock_holder_query_judge(). */
static inline void read_holder_query(const struct redlock_reply *reply, bool twice, struct redlock_answer *answer) {
    const struct redlock_reply_value *value = &reply->value;
    if (value->type == REDLOCK_REPLY_NIL && !twice) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else if (value->type == REDLOCK_REPLY_STRING) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_holder_held(value->bytes, value->size);
        answer->named = REDLOCK_NAMED_ONCE;
        answer->holder = value->bytes;
        answer->holder_size = value->size;
    } else {
        redlock_read_unexpected(reply, answer);
    }
}

static bool is_compared(int64_t number) {
    return number >= -1 && number <= 1;
}

/* The first number from every script that compares the token. */
static void answer_compared(int64_t number, struct redlock_answer *answer) {
    answer->vote = number == 1 ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED;
    if (number != 1) {
        answer->text = redlock_text_constant(number == 0 ? &key_missing : &redlock_holder_other);
    }
}

/* DELEX and DELIFEQ: 1 if they deleted the key, else 0, whatever is there. */
static void read_deleting(const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (reply->value.type != REDLOCK_REPLY_INTEGER || reply->value.integer < 0 || reply->value.integer > 1) {
        redlock_read_unexpected(reply, answer);
    } else if (reply->value.integer == 1) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_text_constant(&not_ours);
    }
}

void redlock_read_release(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer) {
    if (kind & REDLOCK_KIND_DELETING) {
        read_deleting(reply, answer);
    } else if (reply->value.type == REDLOCK_REPLY_INTEGER && is_compared(reply->value.integer)) {
        answer_compared(reply->value.integer, answer);
    } else if (reply->value.type == REDLOCK_REPLY_INTEGER && reply->value.integer == 2) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        answer->handed_over = true;
    } else {
        redlock_read_unexpected(reply, answer);
    }
}

/* The array that a script returns: {n, counter or nil}, with `timed` also seconds and
 * microseconds. */
struct told {
    int64_t number;
    bool counted;
    uint64_t counter;
    int64_t server_us;
};

static bool read_digits(const struct redlock_reply_value *value, size_t digits_max, uint64_t most, uint64_t *number) {
    return value->type == REDLOCK_REPLY_STRING && value->size <= digits_max &&
           redlock_number_read(value->bytes, value->size, most, number);
}

bool redlock_read_server_time(const struct redlock_reply_value pair[2], int64_t *server_us) {
    uint64_t seconds, microseconds;
    if (!read_digits(&pair[0], 10, SECONDS_MAX, &seconds) || !read_digits(&pair[1], 6, 999999, &microseconds) ||
        seconds == 0) {
        return false;
    }
    *server_us = (int64_t)(seconds * 1000000 + microseconds);
    return true;
}

static bool read_array(const struct redlock_reply *reply, bool timed, struct told *told) {
    const struct redlock_reply_value *element = reply->elements;
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != (timed ? 4 : 2) ||
        element[0].type != REDLOCK_REPLY_INTEGER ||
        (timed && !redlock_read_server_time(&element[2], &told->server_us))) {
        return false;
    }
    told->number = element[0].integer;
    told->counted = element[1].type == REDLOCK_REPLY_STRING;
    return told->counted ? redlock_fence_parse(element[1].bytes, element[1].size, &told->counter)
                         : element[1].type == REDLOCK_REPLY_NIL;
}

static void answer_told(const struct told *told, struct redlock_answer *answer) {
    answer->fenced = told->counted;
    answer->counter = told->counter;
    answer->clock.server_us = told->server_us;
}

/* Accepts 1, 2 or 0 with exactly the values that this form of the script can return. */
static inline void answer_acquired(const struct redlock_reply *reply, bool fenced, bool timed,
                                   struct redlock_answer *answer) {
    struct told told = {.number = 1};
    const bool bare = !timed && reply->value.type == REDLOCK_REPLY_INTEGER && reply->value.integer == 1;
    if (!bare && (!read_array(reply, timed, &told) || told.number < 0 || told.number > 2 ||
                  (told.number == 1 && (!timed || told.counted)) || (told.number == 2 && told.counter == 0) ||
                  (told.counted && !fenced))) {
        redlock_read_unexpected(reply, answer);
        return;
    }
    answer_told(&told, answer);
    if (told.number == 0) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_text_constant(&redlock_holder_other);
        return;
    }
    answer->vote = REDLOCK_VOTE_GRANTED;
    answer->accepted = fenced && told.number == 1;
    answer->fenced = fenced;
}

void redlock_read_acquire(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer) {
    if (kind & REDLOCK_KIND_HOLDER_QUERY) {
        read_holder_query(reply, (kind & REDLOCK_KIND_TWICE) != 0, answer);
    } else if (kind & REDLOCK_KIND_TIMED) {
        answer_acquired(reply, (kind & REDLOCK_KIND_FENCED) != 0, true, answer);
    } else if (kind & REDLOCK_KIND_FENCED) {
        answer_acquired(reply, true, false, answer);
    } else {
        redlock_read_set(reply, answer);
    }
}

void redlock_read_fence(const struct redlock_reply *reply, struct redlock_answer *answer) {
    struct told told = {.number = 0};
    if (reply->value.type == REDLOCK_REPLY_INTEGER && is_compared(reply->value.integer)) {
        answer_compared(reply->value.integer, answer);
        answer->fenced = answer->accepted = answer->vote == REDLOCK_VOTE_GRANTED;
    } else if (!read_array(reply, false, &told) || told.number != 2 || told.counter == 0) {
        redlock_read_unexpected(reply, answer);
    } else {
        answer_told(&told, answer);
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_text_constant(&not_below);
    }
}

void redlock_read_extend(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer) {
    if (kind & REDLOCK_KIND_TIMED) {
        struct told told = {.number = 0};
        if (read_array(reply, true, &told) && is_compared(told.number) && !told.counted) {
            answer_told(&told, answer);
            answer_compared(told.number, answer);
            return;
        }
    } else if (reply->value.type == REDLOCK_REPLY_INTEGER && is_compared(reply->value.integer)) {
        answer_compared(reply->value.integer, answer);
        return;
    }
    redlock_read_unexpected(reply, answer);
}

/* {cursor, entries, keys that could not be read}. */
void redlock_read_list(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *element = reply->elements;
    uint64_t cursor;
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != 3 ||
        !read_digits(&element[0], 20, UINT64_MAX, &cursor) || element[1].type != REDLOCK_REPLY_STRING ||
        !redlock_page_is_whole(element[1].bytes, element[1].size) || element[2].type != REDLOCK_REPLY_INTEGER ||
        element[2].integer < 0) {
        redlock_read_unexpected(reply, answer);
        return;
    }
    answer->vote = REDLOCK_VOTE_GRANTED;
    answer->holder = element[1].bytes;
    answer->holder_size = element[1].size;
    answer->cursor = cursor;
    answer->unread = (uint64_t)element[2].integer;
}

static int64_t bounded_ttl_ms(int64_t ttl_ms) {
    return ttl_ms < HOLDER_TTL_MS_MAX ? ttl_ms : HOLDER_TTL_MS_MAX;
}

/* {1, nil, 0, 0, time}: granted; {0, holder or nil, PTTL, rank, time}: queued. A lock that is left
 * free has a PTTL: so long nobody in line gets it. */
void redlock_read_wait(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *element = reply->elements, *holder = &element[1];
    int64_t server_us;
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != 6 ||
        element[0].type != REDLOCK_REPLY_INTEGER || element[2].type != REDLOCK_REPLY_INTEGER ||
        element[3].type != REDLOCK_REPLY_INTEGER || !redlock_read_server_time(&element[4], &server_us)) {
        redlock_read_unexpected(reply, answer);
        return;
    }
    const int64_t ttl_ms = element[2].integer, rank = element[3].integer;
    const bool is_free = holder->type == REDLOCK_REPLY_NIL;
    if (element[0].integer == 1 && is_free && ttl_ms == 0 && rank == 0) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else if (element[0].integer == 0 && rank >= 0 && rank <= UINT32_MAX &&
               (is_free ? ttl_ms == -2 || ttl_ms > 0 : holder->type == REDLOCK_REPLY_STRING && ttl_ms >= -1)) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text =
            is_free ? redlock_text_constant(&queued_free) : redlock_holder_queued(holder->bytes, holder->size);
        answer->holder = is_free ? NULL : holder->bytes;
        answer->holder_size = is_free ? 0 : holder->size;
        answer->holder_ttl_ms = bounded_ttl_ms(ttl_ms);
        answer->rank = (uint32_t)rank;
    } else {
        redlock_read_unexpected(reply, answer);
        return;
    }
    answer->clock.server_us = server_us;
}

void redlock_read_time(const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 2 &&
        redlock_read_server_time(reply->elements, &answer->clock.server_us)) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else {
        redlock_read_unexpected(reply, answer);
    }
}

/* What the node says to a write; NULL if that is about the user or the key. */
static struct redlock_text *why_no_writes(const struct redlock_reply_value *words) {
    const struct redlock_reply_value error = {.type = REDLOCK_REPLY_ERROR, .bytes = words->bytes, .size = words->size};
    char text[REDLOCK_WIRE_ERROR_SIZE];
    switch (redlock_wire_cause(&error)) {
    case REDLOCK_CAUSE_OOM:
    case REDLOCK_CAUSE_MISCONF:
    case REDLOCK_CAUSE_REPLICA:
    case REDLOCK_CAUSE_CLUSTER:
        (void)redlock_wire_error(&error, NULL, text);
        return redlock_text_new(redlock_wire_cause(&error), "%s", text);
    default:
        return NULL;
    }
}

void redlock_read_inspect(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *holder = &reply->elements[0], *ttl = &reply->elements[1];
    const struct redlock_reply_value *waiters = &reply->elements[2], *waited = &reply->elements[3];
    const struct redlock_reply_value *refused = reply->element_count == 5 ? &reply->elements[4] : NULL;
    if (reply->value.type != REDLOCK_REPLY_ARRAY || (reply->element_count != 4 && refused == NULL) ||
        (refused != NULL && refused->type != REDLOCK_REPLY_STRING) || ttl->type != REDLOCK_REPLY_INTEGER ||
        waiters->type != REDLOCK_REPLY_INTEGER || waiters->integer < -1 || waited->type != REDLOCK_REPLY_INTEGER ||
        waited->integer < -1) {
        redlock_read_unexpected(reply, answer);
        return;
    }
    answer->waiters = waiters->integer;
    answer->waited_ms = bounded_ttl_ms(waited->integer);
    if (holder->type == REDLOCK_REPLY_NIL) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = refused == NULL ? NULL : why_no_writes(refused);
    } else if (holder->type == REDLOCK_REPLY_STRING && ttl->integer >= -1 && refused == NULL) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        answer->holder = holder->bytes;
        answer->holder_size = holder->size;
        answer->holder_ttl_ms = bounded_ttl_ms(ttl->integer);
    } else {
        redlock_read_unexpected(reply, answer);
    }
}
