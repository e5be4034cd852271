/* Bytes of a request, meaning of a reply. */
#include "wire/wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/fence.h"
#include "wire/cause.h"
#include "wire/resp.h"
#include "wire/script.h"

/* Room for the headers and fixed words of any message, next to script, key and token. */
#define FRAME_SIZE_MAX  256
#define SCRIPT_SIZE_MAX 1400
/* Of a node's time: until the year 2255, so that what comes of it fits in nanoseconds. */
#define SECONDS_MAX 9000000000
/* Of a key's time to live: callers may multiply it by 1000, and JSON readers keep it (2^53 - 1;
 * 285,000 years). */
#define HOLDER_TTL_MS_MAX INT64_C(9007199254740991)

_Static_assert(FRAME_SIZE_MAX + SCRIPT_SIZE_MAX + 2 * REDLOCK_RESOURCE_SIZE_MAX + REDLOCK_FENCE_SUFFIX_SIZE_MAX +
                       REDLOCK_TOKEN_SIZE_MAX <=
                   REDLOCK_WIRE_SIZE_MAX,
               "a message fits");

static const struct redlock_text key_missing = {.string = "the key is missing"};
static const struct redlock_text other_token = {.string = "held under another token"};
static const struct redlock_text not_below = {.string = "its fencing counter is not below the token"};
static const struct redlock_text no_script = {.string = "the node does not know the script",
                                              .cause = REDLOCK_CAUSE_NOSCRIPT};

static char *literal(char *at, const char *bytes, size_t size) {
    memcpy(at, bytes, size);
    return at + size;
}

/* SET resource token NX PX ttl: the wire format of redsync, node-redlock and others, so that we exclude each other. */
static char *format_set(char *at, const struct redlock_message *message) {
    static const char head[] = "*6\r\n$3\r\nSET\r\n", flags[] = "$2\r\nNX\r\n$2\r\nPX\r\n";
    at = literal(at, head, sizeof head - 1);
    at = redlock_resp_bulk(at, message->key, message->key_size);
    at = redlock_resp_bulk(at, message->token, message->token_size);
    at = literal(at, flags, sizeof flags - 1);
    return redlock_resp_integer(at, message->ttl_ms);
}

/* EVALSHA sha 1 key, or EVAL with the source (R11); with the counter's key as a second one. So many arguments are to follow. */
static char *begin_script(char *at, const struct redlock_message *message, enum redlock_script_id id, size_t keys,
                          size_t arguments) {
    static const char by_sha[] = "$7\r\nEVALSHA\r\n", by_source[] = "$4\r\nEVAL\r\n";
    static const char one_key[] = "$1\r\n1\r\n", two_keys[] = "$1\r\n2\r\n";
    const struct redlock_script *script = redlock_script_get(id);
    assert(script->source_size <= SCRIPT_SIZE_MAX);
    at = redlock_resp_array(at, 3 + keys + arguments);
    if (message->by_source) {
        at = literal(at, by_source, sizeof by_source - 1);
        at = redlock_resp_bulk(at, script->source, script->source_size);
    } else {
        at = literal(at, by_sha, sizeof by_sha - 1);
        at = redlock_resp_bulk(at, script->sha1, REDLOCK_SHA1_SIZE);
    }
    at = literal(at, keys == 1 ? one_key : two_keys, sizeof one_key - 1);
    at = redlock_resp_bulk(at, message->key, message->key_size);
    if (keys == 2) {
        const struct redlock_fence_keys *fence = message->fence_keys;
        assert(fence->suffix_size <= REDLOCK_FENCE_SUFFIX_SIZE_MAX);
        at = redlock_resp_header(at, message->key_size + fence->suffix_size);
        at = literal(at, message->key, message->key_size);
        at = literal(at, fence->suffix, fence->suffix_size);
        at = literal(at, "\r\n", 2);
    }
    return at;
}

static char *format_token(char *at, const struct redlock_message *message) {
    return redlock_resp_bulk(at, message->token, message->token_size);
}

static char *format_number(char *at, uint64_t number) {
    char digits[REDLOCK_FENCE_DIGITS];
    redlock_fence_format(number, digits);
    return redlock_resp_bulk(at, digits, sizeof digits);
}

/* With a fencing token, the node's time, or both: a script that sets the same key to the same. */
static char *format_acquire(char *at, const struct redlock_message *message) {
    const bool fenced = message->fence != 0;
    at = begin_script(at, message, REDLOCK_SCRIPT_ACQUIRE, fenced ? 2 : 1, 5);
    at = format_token(at, message);
    at = redlock_resp_integer(at, message->ttl_ms);
    at = fenced ? format_number(at, message->fence) : redlock_resp_bulk(at, "", 0);
    at = redlock_resp_integer(at, fenced ? message->fence_keys->expiry_ms : 0);
    return redlock_resp_integer(at, message->timed);
}

static char *format_extend(char *at, const struct redlock_message *message) {
    at = begin_script(at, message, REDLOCK_SCRIPT_EXTEND, 1, message->timed ? 3 : 2);
    at = format_token(at, message);
    at = redlock_resp_integer(at, message->ttl_ms);
    return message->timed ? redlock_resp_integer(at, 1) : at;
}

static char *format_release(char *at, const struct redlock_message *message) {
    return format_token(begin_script(at, message, REDLOCK_SCRIPT_RELEASE, 1, 1), message);
}

static char *format_fence(char *at, const struct redlock_message *message) {
    at = begin_script(at, message, REDLOCK_SCRIPT_FENCE, 2, 3);
    at = format_token(at, message);
    at = format_number(at, message->fence);
    return redlock_resp_integer(at, message->fence_keys->expiry_ms);
}

size_t redlock_wire_format(const struct redlock_message *message, char *buffer) {
    assert(message->key_size <= REDLOCK_RESOURCE_SIZE_MAX && message->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    static const char time_command[] = "*1\r\n$4\r\nTIME\r\n";
    char *end = buffer;
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        if (message->fence != 0 || message->timed) {
            end = format_acquire(buffer, message);
            break;
        }
        /* fall through */
    case REDLOCK_OP_HEAL:
        end = format_set(buffer, message);
        break;
    case REDLOCK_OP_EXTEND:
        end = format_extend(buffer, message);
        break;
    case REDLOCK_OP_RELEASE:
        end = format_release(buffer, message);
        break;
    case REDLOCK_OP_INSPECT:
        end = begin_script(buffer, message, REDLOCK_SCRIPT_INSPECT, 1, 0);
        break;
    case REDLOCK_OP_FENCE:
        end = format_fence(buffer, message);
        break;
    case REDLOCK_OP_TIME:
        end = literal(buffer, time_command, sizeof time_command - 1);
        break;
    case REDLOCK_OP_NONE:
        break;
    }
    assert(end != buffer);
    return (size_t)(end - buffer);
}

/* Looked for in the bytes as they came, before any of them is cut off or made printable. */
static bool quotes(const struct redlock_reply_value *error, const char *password) {
    const size_t size = password == NULL ? 0 : strlen(password);
    return size > 0 && error->size >= size && memmem(error->bytes, error->size, password, size) != NULL;
}

size_t redlock_wire_error(const struct redlock_reply_value *error, const char *password,
                          char buffer[REDLOCK_WIRE_ERROR_SIZE]) {
    /* To an unknown command a server answers with its arguments: a token, or a password. */
    static const char arguments[] = ", with args beginning with";
    if (quotes(error, password)) {
        return (size_t)snprintf(buffer, REDLOCK_WIRE_ERROR_SIZE, "an error that quotes the password");
    }
    size_t size = error->size < REDLOCK_WIRE_ERROR_SIZE ? error->size : REDLOCK_WIRE_ERROR_SIZE - 1;
    const char *echoed = error->size == 0 ? NULL : memmem(error->bytes, error->size, arguments, sizeof arguments - 1);
    if (echoed != NULL && (size_t)(echoed - error->bytes) < size) {
        size = (size_t)(echoed - error->bytes);
    }
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)error->bytes[i];
        buffer[i] = byte < 0x20 || byte >= 0x7f ? '?' : (char)byte;
    }
    buffer[size] = '\0';
    return size;
}

static void answer_error(const struct redlock_reply_value *error, const char *password, struct redlock_answer *answer) {
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

/* A reply that this operation cannot have: nothing is known of what the node did (R20). */
static void answer_unexpected(const struct redlock_reply *reply, struct redlock_answer *answer) {
    static const char *const names[] = {[REDLOCK_REPLY_NONE] = "nothing",    [REDLOCK_REPLY_STATUS] = "a status",
                                        [REDLOCK_REPLY_ERROR] = "an error",  [REDLOCK_REPLY_INTEGER] = "an integer",
                                        [REDLOCK_REPLY_STRING] = "a string", [REDLOCK_REPLY_NIL] = "nil",
                                        [REDLOCK_REPLY_ARRAY] = "an array",  [REDLOCK_REPLY_OTHER] = "another type"};
    answer->vote = REDLOCK_VOTE_UNKNOWN;
    answer->text =
        redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE, "the node answered out of protocol (%s); is it a Redis server?",
                         names[reply->value.type]);
}

static void answer_set(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *value = &reply->value;
    if (value->type == REDLOCK_REPLY_STATUS && value->size == 2 && memcmp(value->bytes, "OK", 2) == 0) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else if (value->type == REDLOCK_REPLY_NIL) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_text_constant(&other_token);
    } else {
        answer_unexpected(reply, answer);
    }
}

static void answer_compared(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *value = &reply->value;
    if (value->type != REDLOCK_REPLY_INTEGER || value->integer < -1 || value->integer > 1) {
        answer_unexpected(reply, answer);
        return;
    }
    answer->vote = value->integer == 1 ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED;
    if (value->integer != 1) {
        answer->text = redlock_text_constant(value->integer == 0 ? &key_missing : &other_token);
    }
}

/* What a script's array tells: {n, counter or nil}, timed with seconds and microseconds behind. */
struct told {
    int64_t number;
    bool counted;
    uint64_t counter;
    int64_t server_us;
};

/* Up to `digits_max` digits and nothing else. */
static bool read_digits(const struct redlock_reply_value *value, size_t digits_max, int64_t *number) {
    int64_t sum = 0;
    if (value->type != REDLOCK_REPLY_STRING || value->size == 0 || value->size > digits_max) {
        return false;
    }
    for (size_t i = 0; i < value->size; i++) {
        if (value->bytes[i] < '0' || value->bytes[i] > '9') {
            return false;
        }
        sum = sum * 10 + (value->bytes[i] - '0');
    }
    *number = sum;
    return true;
}

bool redlock_wire_time(const struct redlock_reply_value pair[2], int64_t *server_us) {
    int64_t seconds, microseconds;
    if (!read_digits(&pair[0], 10, &seconds) || !read_digits(&pair[1], 6, &microseconds) || seconds == 0 ||
        seconds > SECONDS_MAX) {
        return false;
    }
    *server_us = seconds * 1000000 + microseconds;
    return true;
}

static bool read_array(const struct redlock_reply *reply, bool timed, struct told *told) {
    const struct redlock_reply_value *element = reply->elements;
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != (timed ? 4 : 2) ||
        element[0].type != REDLOCK_REPLY_INTEGER || (timed && !redlock_wire_time(&element[2], &told->server_us))) {
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

/* 1, 2 or 0 with or without what else it tells: exactly what this message's form of the script can say, nothing else. */
static void answer_acquired(unsigned expected, const struct redlock_reply *reply, struct redlock_answer *answer) {
    const bool fenced = (expected & REDLOCK_WIRE_FENCED) != 0, timed = (expected & REDLOCK_WIRE_TIMED) != 0;
    struct told told = {.number = 1};
    const bool bare = !timed && reply->value.type == REDLOCK_REPLY_INTEGER && reply->value.integer == 1;
    if (!bare && (!read_array(reply, timed, &told) || told.number < 0 || told.number > 2 ||
                  (told.number == 1 && (!timed || told.counted)) || (told.number == 2 && told.counter == 0) ||
                  (told.counted && !fenced))) {
        answer_unexpected(reply, answer);
        return;
    }
    answer_told(&told, answer);
    if (told.number == 0) {
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_text_constant(&other_token);
        return;
    }
    answer->vote = REDLOCK_VOTE_GRANTED;
    answer->accepted = fenced && told.number == 1;
    answer->fenced = fenced;
}

static void answer_number(int64_t number, struct redlock_answer *answer) {
    answer->vote = number == 1 ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED;
    if (number != 1) {
        answer->text = redlock_text_constant(number == 0 ? &key_missing : &other_token);
    }
}

static bool is_compared(int64_t number) {
    return number >= -1 && number <= 1;
}

static void answer_fence(const struct redlock_reply *reply, struct redlock_answer *answer) {
    struct told told = {.number = 0};
    if (reply->value.type == REDLOCK_REPLY_INTEGER && is_compared(reply->value.integer)) {
        answer_number(reply->value.integer, answer);
        answer->fenced = answer->accepted = answer->vote == REDLOCK_VOTE_GRANTED;
    } else if (!read_array(reply, false, &told) || told.number != 2 || told.counter == 0) {
        answer_unexpected(reply, answer);
    } else {
        answer_told(&told, answer);
        answer->vote = REDLOCK_VOTE_DENIED;
        answer->text = redlock_text_constant(&not_below);
    }
}

static void answer_extended(const struct redlock_reply *reply, struct redlock_answer *answer) {
    struct told told = {.number = 0};
    if (!read_array(reply, true, &told) || !is_compared(told.number) || told.counted) {
        answer_unexpected(reply, answer);
        return;
    }
    answer_told(&told, answer);
    answer_number(told.number, answer);
}

static void answer_time(const struct redlock_reply *reply, struct redlock_answer *answer) {
    if (reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 2 &&
        redlock_wire_time(reply->elements, &answer->clock.server_us)) {
        answer->vote = REDLOCK_VOTE_GRANTED;
    } else {
        answer_unexpected(reply, answer);
    }
}

static void answer_inspect(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *holder = &reply->elements[0], *ttl = &reply->elements[1];
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != 2 || ttl->type != REDLOCK_REPLY_INTEGER) {
        answer_unexpected(reply, answer);
    } else if (holder->type == REDLOCK_REPLY_NIL) {
        answer->vote = REDLOCK_VOTE_DENIED;
    } else if (holder->type == REDLOCK_REPLY_STRING && ttl->integer >= -1) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        answer->holder = holder->bytes;
        answer->holder_size = holder->size;
        answer->holder_ttl_ms = ttl->integer < HOLDER_TTL_MS_MAX ? ttl->integer : HOLDER_TTL_MS_MAX;
    } else {
        answer_unexpected(reply, answer);
    }
}

void redlock_wire_answer(unsigned expected, const struct redlock_reply *reply, const char *password,
                         struct redlock_answer *answer) {
    /* No more than what is always looked at: this runs for each vote. */
    answer->vote = REDLOCK_VOTE_UNKNOWN;
    answer->no_script = answer->fenced = answer->accepted = false;
    answer->counter = 0;
    answer->text = NULL;
    answer->clock.server_us = 0;
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        answer_error(&reply->value, password, answer);
        return;
    }
    switch (expected) {
    case REDLOCK_OP_ACQUIRE:
    case REDLOCK_OP_HEAL:
        answer_set(reply, answer);
        break;
    case REDLOCK_OP_ACQUIRE | REDLOCK_WIRE_FENCED:
    case REDLOCK_OP_ACQUIRE | REDLOCK_WIRE_TIMED:
    case REDLOCK_OP_ACQUIRE | REDLOCK_WIRE_FENCED | REDLOCK_WIRE_TIMED:
        answer_acquired(expected, reply, answer);
        break;
    case REDLOCK_OP_EXTEND:
    case REDLOCK_OP_RELEASE:
        answer_compared(reply, answer);
        break;
    case REDLOCK_OP_EXTEND | REDLOCK_WIRE_TIMED:
        answer_extended(reply, answer);
        break;
    case REDLOCK_OP_INSPECT:
        answer_inspect(reply, answer);
        break;
    case REDLOCK_OP_FENCE:
        answer_fence(reply, answer);
        break;
    case REDLOCK_OP_TIME:
        answer_time(reply, answer);
        break;
    default:
        answer_unexpected(reply, answer);
    }
}
