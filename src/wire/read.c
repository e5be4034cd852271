/* What the reply to each kind of request means. */
#include "wire/read.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/holder.h"
#include "core/fence.h"
#include "core/number.h"
#include "core/planted.h"
#include "wire/error.h"
#include "wire/page.h"
#include "wire/slots.h"

/* The latest time to accept from a node: in the year 2255. It still fits into nanoseconds. */
#define SECONDS_MAX 9000000000
/* The longest time to live to accept, in ms: callers may multiply it by 1000, and JSON readers keep
 * it exact (2^53 - 1; 285,000 years). */
#define HOLDER_TTL_MS_MAX INT64_C(9007199254740991)

static const struct redlock_text key_missing = {.string = "the key is missing"};
static const struct redlock_text not_plain = {
    .string = "the key is missing, held under another token, or waited for: only the script tells which"};
static const struct redlock_text not_below = {.string = "its fencing counter is not below the token"};
static const struct redlock_text queued_free = {.string = "queued for a free lock"};
static const struct redlock_text queued_reading = {.string = "queued beside others who read"};
static const struct redlock_text others_wait = {.string = "others wait for it"};

static void deny(struct redlock_answer *answer, const struct redlock_text *why) {
    answer->vote = REDLOCK_VOTE_DENIED;
    answer->text = redlock_text_constant(why);
}

static void name_holder(struct redlock_answer *answer, const struct redlock_reply_value *value) {
    answer->holder = value->bytes;
    answer->holder_size = value->size;
}

static bool read_set(const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (redlock_reply_is_ok(&reply->value)) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        return true;
    }
    deny(answer, &redlock_holder_other);
    return reply->value.type == REDLOCK_REPLY_NIL;
}

/* Of two replies, nil says nothing alone: redlock_holder_query_judge(). */
static inline bool read_holder_query(const struct redlock_reply *reply, bool twice, struct redlock_answer *answer) {
    const struct redlock_reply_value *value = &reply->value;
    if (value->type == REDLOCK_REPLY_NIL && !twice) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else if (value->type == REDLOCK_REPLY_STRING) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_holder_held(value->bytes, value->size);
        answer->named = REDLOCK_NAMED_ONCE;
        name_holder(answer, value);
    } else {
        return false;
    }
    return true;
}

static inline bool is_integer(const struct redlock_reply_value *value, int64_t least, int64_t most) {
    return value->type == REDLOCK_REPLY_INTEGER && value->integer >= least && value->integer <= most;
}

/* The first number from every script that compares the token: -1, 0 or 1. */
static inline bool is_compared(const struct redlock_reply_value *value) {
    return is_integer(value, -1, 1);
}

static inline void answer_compared(int64_t number, struct redlock_answer *answer) {
    if (number == 1) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else {
        deny(answer, number == 0 ? &key_missing : &redlock_holder_other);
    }
}

/* DELEX and DELIFEQ: 1 if they deleted the key, else 0, whatever is there. If it is our token with
 * a mark, the script hands the lock over. */
static bool read_deleting(const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (!is_integer(&reply->value, 0, 1)) {
        return false;
    }
    if (reply->value.integer == 1) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else {
        answer->vote = REDLOCK_PLANTED(DELETE_FINAL) ? REDLOCK_VOTE_DENIED : REDLOCK_VOTE_FAILED;
        answer->again = answer->vote == REDLOCK_VOTE_FAILED ? REDLOCK_AGAIN_BY_SCRIPT : REDLOCK_AGAIN_NOT;
        answer->text = redlock_text_constant(&not_plain);
    }
    return true;
}

/* 2: our key is gone, and a waiter has the lock. */
static bool read_release(const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (!is_integer(&reply->value, -1, 2)) {
        return false;
    }
    if (reply->value.integer == 2) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        answer->handed_over = true;
    } else {
        answer_compared(reply->value.integer, answer);
    }
    return true;
}

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

/* The array that a script returns: {n, counter or nil}, with `timed` also seconds and
 * microseconds. */
static bool read_array(const struct redlock_reply *reply, bool timed, int64_t least, int64_t most,
                       struct redlock_answer *answer) {
    const struct redlock_reply_value *element = reply->elements;
    if (!redlock_reply_is_array(reply, timed ? 4 : 2) || !is_integer(&element[0], least, most) ||
        (timed && !redlock_read_server_time(&element[2], &answer->clock.server_us))) {
        return false;
    }
    answer->fenced = element[1].type == REDLOCK_REPLY_STRING;
    return answer->fenced ? redlock_fence_parse(element[1].bytes, element[1].size, &answer->counter)
                          : element[1].type == REDLOCK_REPLY_NIL;
}

/* SHARE: as the scripts that compare, with the counter or the time if asked. */
static bool read_shared(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer) {
    const bool fenced = (kind & REDLOCK_KIND_FENCED) != 0, timed = (kind & REDLOCK_KIND_TIMED) != 0;
    const struct redlock_reply_value *number = fenced || timed ? &reply->elements[0] : &reply->value;
    if (fenced || timed ? !read_array(reply, timed, -1, 1, answer) || (answer->fenced && !fenced)
                        : !is_compared(number)) {
        return false;
    }
    answer_compared(number->integer, answer);
    if ((kind & REDLOCK_KIND_OPERATION) == REDLOCK_OP_ACQUIRE && number->integer == 0) {
        answer->text = redlock_text_constant(&others_wait);
    }
    answer->fenced = answer->fenced || (fenced && answer->vote == REDLOCK_VOTE_GRANTED);
    return true;
}

/* Accepts 1, 2 or 0 with exactly the values that this form of the script can return. */
static inline bool answer_acquired(const struct redlock_reply *reply, bool fenced, bool timed,
                                   struct redlock_answer *answer) {
    int64_t number = 1;
    if (timed || !is_integer(&reply->value, 1, 1)) {
        if (!read_array(reply, timed, 0, 2, answer)) {
            return false;
        }
        number = reply->elements[0].integer;
        if ((number == 1 && (!timed || answer->fenced)) || (number == 2 && answer->counter == 0) ||
            (answer->fenced && !fenced)) {
            return false;
        }
    }
    if (number == 0) {
        deny(answer, &redlock_holder_other);
    } else {
        answer->vote = REDLOCK_VOTE_GRANTED;
        answer->accepted = fenced && number == 1;
        answer->fenced = fenced;
    }
    return true;
}

static bool read_fence(const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (is_compared(&reply->value)) {
        answer_compared(reply->value.integer, answer);
        answer->fenced = answer->accepted = answer->vote == REDLOCK_VOTE_GRANTED;
        return true;
    }
    if (!read_array(reply, false, 2, 2, answer) || answer->counter == 0) {
        return false;
    }
    deny(answer, &not_below);
    return true;
}

static inline bool read_extend(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer) {
    if (kind & REDLOCK_KIND_TIMED) {
        if (!read_array(reply, true, -1, 1, answer) || answer->fenced) {
            return false;
        }
        answer_compared(reply->elements[0].integer, answer);
        return true;
    }
    if (!is_compared(&reply->value)) {
        return false;
    }
    answer_compared(reply->value.integer, answer);
    return true;
}

/* {1, slots, time}; {0, nil, time}: too few are free; {-1, token or nil, time}: others have the
 * gate. */
static bool read_take(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *element = reply->elements, *more = &element[1];
    if (!redlock_reply_is_array(reply, 4) || !is_integer(&element[0], -1, 1) ||
        !redlock_read_server_time(&element[2], &answer->clock.server_us)) {
        return false;
    }
    if (element[0].integer == 1) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        answer->named = REDLOCK_NAMED_SLOTS;
        name_holder(answer, more);
        return more->type == REDLOCK_REPLY_STRING;
    }
    const bool named = more->type == REDLOCK_REPLY_STRING;
    answer->vote = REDLOCK_VOTE_DENIED;
    answer->text = redlock_slots_refused(element[0].integer == 0, named ? more->bytes : NULL, named ? more->size : 0);
    return named ? element[0].integer < 0 : more->type == REDLOCK_REPLY_NIL;
}

__attribute__((noinline)) static bool read_slots(const struct redlock_reply *reply, unsigned kind,
                                                 struct redlock_answer *answer) {
    switch (kind & REDLOCK_KIND_OPERATION) {
    case REDLOCK_OP_ACQUIRE:
        return read_take(reply, answer);
    case REDLOCK_OP_EXTEND:
        return read_extend(reply, kind, answer);
    default:
        if (!is_compared(&reply->value)) {
            return false;
        }
        answer_compared(reply->value.integer, answer);
        return true;
    }
}

/* {cursor, entries, keys that could not be read}. */
static bool read_list(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *element = reply->elements;
    uint64_t cursor;
    if (!redlock_reply_is_array(reply, 3) || !read_digits(&element[0], 20, UINT64_MAX, &cursor) ||
        element[1].type != REDLOCK_REPLY_STRING || !redlock_page_is_whole(element[1].bytes, element[1].size) ||
        !is_integer(&element[2], 0, INT64_MAX)) {
        return false;
    }
    answer->vote = REDLOCK_VOTE_GRANTED;
    name_holder(answer, &element[1]);
    answer->cursor = cursor;
    answer->unread = (uint64_t)element[2].integer;
    return true;
}

static int64_t bounded_ttl_ms(int64_t ttl_ms) {
    return ttl_ms < HOLDER_TTL_MS_MAX ? ttl_ms : HOLDER_TTL_MS_MAX;
}

/* {1, nil, 0, 0, time}: granted; {0, holder or nil, PTTL, rank, time}: queued. A lock that is left
 * free has a PTTL: so long nobody in line gets it. {2, holder or nil, …}: others read it, and to
 * one who reads {3, the first in line, …}. */
static bool read_wait(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *element = reply->elements, *holder = &element[1];
    if (!redlock_reply_is_array(reply, 6) || !is_integer(&element[0], 0, 3) ||
        element[2].type != REDLOCK_REPLY_INTEGER || !is_integer(&element[3], 0, UINT32_MAX) ||
        !redlock_read_server_time(&element[4], &answer->clock.server_us)) {
        return false;
    }
    const int64_t number = element[0].integer, ttl_ms = element[2].integer, rank = element[3].integer;
    const bool is_nil = holder->type == REDLOCK_REPLY_NIL, is_free = is_nil && number != 2;
    if (number == 1) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        return is_nil && ttl_ms == 0 && rank == 0;
    }
    const bool fits = is_free       ? number == 0 && (ttl_ms == -2 || ttl_ms > 0)
                      : number == 0 ? ttl_ms >= -1
                                    : ttl_ms >= 0; /* a set ends */
    if (!fits || (!is_nil && holder->type != REDLOCK_REPLY_STRING)) {
        return false;
    }
    answer->vote = REDLOCK_VOTE_DENIED;
    answer->text = is_free  ? redlock_text_constant(&queued_free)
                   : is_nil ? redlock_text_constant(&queued_reading)
                            : redlock_holder_queued(holder->bytes, holder->size);
    answer->holder = is_nil ? NULL : holder->bytes;
    answer->holder_size = is_nil ? 0 : holder->size;
    answer->ahead = number == 3;
    answer->holder_ttl_ms = bounded_ttl_ms(ttl_ms);
    answer->rank = (uint32_t)rank;
    return true;
}

static bool read_time(const struct redlock_reply *reply, struct redlock_answer *answer) {
    answer->vote = REDLOCK_VOTE_GRANTED;
    return redlock_reply_is_array(reply, 2) && redlock_read_server_time(reply->elements, &answer->clock.server_us);
}

/* What the node says to a write; NULL if that is about the user or the key. */
static struct redlock_text *why_no_writes(const struct redlock_reply_value *words) {
    assert(words->type == REDLOCK_REPLY_STRING);
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

/* {holder or nil, PTTL, waiters, time waited}, and what the node said to a write that it refused,
 * or how many read, and the names of those who read or wait. */
static bool read_inspect(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *holder = &reply->elements[0], *ttl = &reply->elements[1];
    const struct redlock_reply_value *waiters = &reply->elements[2], *waited = &reply->elements[3];
    const struct redlock_reply_value *more = &reply->elements[4], *names = &reply->elements[5];
    const bool is_named = redlock_reply_is_array(reply, 6), is_refused = redlock_reply_is_array(reply, 5);
    if ((is_named ? !is_integer(more, 0, INT64_MAX) || names->type != REDLOCK_REPLY_STRING ||
                        !redlock_page_is_names(names->bytes, names->size)
                  : !(is_refused && more->type == REDLOCK_REPLY_STRING) && !redlock_reply_is_array(reply, 4)) ||
        ttl->type != REDLOCK_REPLY_INTEGER || !is_integer(waiters, -1, INT64_MAX) ||
        !is_integer(waited, -1, INT64_MAX)) {
        return false;
    }
    if (holder->type == REDLOCK_REPLY_NIL && (!is_named || more->integer == 0)) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = is_refused ? why_no_writes(more) : NULL;
    } else if (holder->type == REDLOCK_REPLY_STRING && ttl->integer >= -1 && !is_refused) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        name_holder(answer, holder);
        answer->holder_ttl_ms = bounded_ttl_ms(ttl->integer);
        answer->readers = is_named ? more->integer : 0;
    } else {
        return false;
    }
    answer->first = is_named ? names->bytes : NULL;
    answer->first_size = is_named ? names->size : 0;
    answer->waiters = waiters->integer;
    answer->waited_ms = bounded_ttl_ms(waited->integer);
    return true;
}

/* Kept apart: inlined, they cost each vote some instructions. */
__attribute__((noinline, cold)) static bool
read_rare(enum redlock_operation operation, const struct redlock_reply *reply, struct redlock_answer *answer) {
    assert(answer->vote == REDLOCK_VOTE_UNKNOWN && answer->text == NULL);
    switch (operation) {
    case REDLOCK_OP_INSPECT:
        return read_inspect(reply, answer);
    case REDLOCK_OP_FENCE:
        return read_fence(reply, answer);
    case REDLOCK_OP_HEAL:
        return read_set(reply, answer);
    case REDLOCK_OP_TIME:
        return read_time(reply, answer);
    case REDLOCK_OP_WAIT:
        return read_wait(reply, answer);
    case REDLOCK_OP_LIST:
        return read_list(reply, answer);
    default:
        return false;
    }
}

static bool read_seldom(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer) {
    return kind & REDLOCK_KIND_SHARED ? read_shared(reply, kind, answer)
                                      : answer_acquired(reply, (kind & REDLOCK_KIND_FENCED) != 0, true, answer);
}

/* What each lock has comes first. Function pointers would cost 1 % more instructions per lock. */
bool redlock_read(unsigned kind, const struct redlock_reply *reply, struct redlock_answer *answer) {
    const enum redlock_operation operation = (enum redlock_operation)(kind & REDLOCK_KIND_OPERATION);
    const unsigned seldom = REDLOCK_KIND_TIMED | REDLOCK_KIND_SHARED;
    if (kind & REDLOCK_KIND_SLOTS) {
        return read_slots(reply, kind, answer);
    }
    if (operation == REDLOCK_OP_ACQUIRE) {
        const bool fenced = (kind & REDLOCK_KIND_FENCED) != 0;
        return kind & REDLOCK_KIND_HOLDER_QUERY ? read_holder_query(reply, (kind & REDLOCK_KIND_TWICE) != 0, answer)
               : kind & seldom                  ? read_seldom(reply, kind, answer)
               : fenced                         ? answer_acquired(reply, true, false, answer)
                                                : read_set(reply, answer);
    }
    if (operation == REDLOCK_OP_RELEASE) {
        return kind & REDLOCK_KIND_DELETING ? read_deleting(reply, answer) : read_release(reply, answer);
    }
    if (kind & REDLOCK_KIND_SHARED) {
        return read_shared(reply, kind, answer);
    }
    return operation == REDLOCK_OP_EXTEND ? read_extend(reply, kind, answer) : read_rare(operation, reply, answer);
}
