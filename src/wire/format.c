/* The bytes of each kind of request. */
#include "wire/format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/fence.h"
#include "core/number.h"
#include "wire/resp.h"
#include "wire/script.h"

/* Room for the headers and fixed words of any message, besides script, key and token. */
#define FRAME_SIZE_MAX  384
#define SCRIPT_SIZE_MAX 3100

_Static_assert(FRAME_SIZE_MAX + SCRIPT_SIZE_MAX + 3 * REDLOCK_RESOURCE_SIZE_MAX + 2 * REDLOCK_FENCE_SUFFIX_SIZE_MAX +
                       REDLOCK_TOKEN_SIZE_MAX + REDLOCK_CHANNEL_SIZE_MAX <=
                   REDLOCK_WIRE_SIZE_MAX,
               "a message fits");

static char *literal(char *at, const char *bytes, size_t size) {
    memcpy(at, bytes, size);
    return at + size;
}

/* The key of the lock. */
static inline char *format_lock(char *at, const struct redlock_message *message) {
    return redlock_resp_bulk(at, redlock_target_key(message->target), redlock_target_key_size(message->target));
}

static inline char *format_set(char *at, const struct redlock_message *message, const char *head, size_t head_size) {
    static const char flags[] = "$2\r\nNX\r\n$2\r\nPX\r\n";
    at = literal(at, head, head_size);
    at = format_lock(at, message);
    at = redlock_resp_bulk(at, message->token, message->token_size);
    at = literal(at, flags, sizeof flags - 1);
    return redlock_resp_integer(at, message->ttl_ms);
}

char *redlock_format_set(char *at, const struct redlock_message *message) {
    static const char head[] = "*6\r\n$3\r\nSET\r\n";
    return format_set(at, message, head, sizeof head - 1);
}

static inline char *format_holder_query(char *at, const struct redlock_message *message) {
    static const char head[] = "*7\r\n$3\r\nSET\r\n", get[] = "$3\r\nGET\r\n";
    return literal(format_set(at, message, head, sizeof head - 1), get, sizeof get - 1);
}

/* A command of newer servers, in place of the script. Kept apart, like redlock_format_wait(). */
__attribute__((noinline)) static char *format_deleting(char *at, const struct redlock_message *message) {
    static const char delex[] = "*4\r\n$5\r\nDELEX\r\n", delifeq[] = "*3\r\n$7\r\nDELIFEQ\r\n";
    static const char if_equal[] = "$4\r\nIFEQ\r\n";
    const bool is_delex = message->form.deleting == REDLOCK_DELETING_DELEX;
    assert(message->only_deletes && !message->by_source && message->handing == REDLOCK_HAND_OVER);
    assert(!message->target->announced);
    at = is_delex ? literal(at, delex, sizeof delex - 1) : literal(at, delifeq, sizeof delifeq - 1);
    at = format_lock(at, message);
    at = is_delex ? literal(at, if_equal, sizeof if_equal - 1) : at;
    return redlock_resp_bulk(at, message->token, message->token_size);
}

char *redlock_format_time(char *at) {
    static const char command[] = "*1\r\n$4\r\nTIME\r\n";
    return literal(at, command, sizeof command - 1);
}

/* Writes EVALSHA or EVAL (R11), the script, the number of keys, and the first, the lock. The caller
 * appends the other keys and the arguments. */
static char *begin_script(char *at, const struct redlock_message *message, enum redlock_script_id id, size_t keys,
                          size_t arguments) {
    assert(keys >= 1 && keys <= 9);
    static const char by_sha[] = "$7\r\nEVALSHA\r\n", by_source[] = "$4\r\nEVAL\r\n";
    const char count[] = {'$', '1', '\r', '\n', (char)('0' + keys), '\r', '\n'};
    const struct redlock_script *script = redlock_script_get(id);
    at = redlock_resp_array(at, 3 + keys + arguments);
    if (message->by_source) {
        assert(script->source_size <= SCRIPT_SIZE_MAX);
        at = literal(at, by_source, sizeof by_source - 1);
        at = redlock_resp_bulk(at, script->source, script->source_size);
    } else {
        at = literal(at, by_sha, sizeof by_sha - 1);
        at = redlock_resp_bulk(at, script->sha1, REDLOCK_SHA1_SIZE);
    }
    at = literal(at, count, sizeof count);
    return format_lock(at, message);
}

/* A key beside the lock: the lock's key and both suffixes. */
static char *format_key(char *at, const struct redlock_message *message, const char *suffix, size_t suffix_size,
                        const char *more, size_t more_size) {
    const size_t key_size = redlock_target_key_size(message->target);
    at = redlock_resp_header(at, key_size + suffix_size + more_size);
    at = literal(at, redlock_target_key(message->target), key_size);
    at = literal(at, suffix, suffix_size);
    at = literal(at, more, more_size);
    return literal(at, "\r\n", 2);
}

static char *format_counter(char *at, const struct redlock_message *message) {
    const struct redlock_fence_keys *fence = message->fence_keys;
    assert(fence->suffix_size <= REDLOCK_FENCE_SUFFIX_SIZE_MAX);
    return format_key(at, message, fence->suffix, fence->suffix_size, "", 0);
}

static char *format_token(char *at, const struct redlock_message *message) {
    return redlock_resp_bulk(at, message->token, message->token_size);
}

static char *format_number(char *at, uint64_t number) {
    char digits[REDLOCK_FENCE_DIGITS];
    redlock_fence_format(number, digits);
    return redlock_resp_bulk(at, digits, sizeof digits);
}

/* A fencing token or the node's time needs a script, which sets the key just as SET NX PX
 * does. */
static char *format_acquire(char *at, const struct redlock_message *message, bool fenced) {
    assert(message->fence != 0 || message->timed);
    at = begin_script(at, message, REDLOCK_SCRIPT_ACQUIRE, fenced ? 2 : 1, 5);
    at = fenced ? format_counter(at, message) : at;
    at = format_token(at, message);
    at = redlock_resp_integer(at, message->ttl_ms);
    at = fenced ? format_number(at, message->fence) : redlock_resp_bulk(at, "", 0);
    at = redlock_resp_integer(at, fenced ? message->fence_keys->expiry_ms : 0);
    return redlock_resp_integer(at, message->timed);
}

char *redlock_format_acquire(char *at, const struct redlock_message *message, unsigned kind) {
    if (kind & REDLOCK_KIND_HOLDER_QUERY) {
        at = kind & REDLOCK_KIND_TWICE ? format_holder_query(at, message) : at;
        return format_holder_query(at, message);
    }
    if (kind & (REDLOCK_KIND_FENCED | REDLOCK_KIND_TIMED)) {
        return format_acquire(at, message, (kind & REDLOCK_KIND_FENCED) != 0);
    }
    return redlock_format_set(at, message);
}

char *redlock_format_extend(char *at, const struct redlock_message *message) {
    at = begin_script(at, message, REDLOCK_SCRIPT_EXTEND, 1, message->timed ? 3 : 2);
    at = format_token(at, message);
    at = redlock_resp_integer(at, message->ttl_ms);
    return message->timed ? redlock_resp_integer(at, 1) : at;
}

static char *format_wait_suffix(char *at, const struct redlock_message *message) {
    const size_t suffix_size = strlen(message->wait_suffix);
    assert(suffix_size != 0 && suffix_size <= REDLOCK_WAIT_SUFFIX_SIZE_MAX);
    return redlock_resp_bulk(at, message->wait_suffix, suffix_size);
}

static inline __attribute__((always_inline)) char *format_release(char *at, const struct redlock_message *message,
                                                                  size_t arguments) {
    at = format_token(begin_script(at, message, REDLOCK_SCRIPT_RELEASE, 1, arguments), message);
    return format_wait_suffix(at, message);
}

/* Kept apart, like redlock_format_wait(): inlined, each costs a plain lock some instructions. */
__attribute__((noinline)) static char *format_announced_release(char *at, const struct redlock_message *message) {
    at = redlock_resp_integer(format_release(at, message, 4), message->handing);
    return redlock_resp_integer(at, 1);
}

char *redlock_format_release(char *at, const struct redlock_message *message, unsigned kind) {
    if (kind & REDLOCK_KIND_DELETING) {
        return format_deleting(at, message);
    }
    if (message->target->announced) {
        return format_announced_release(at, message);
    }
    at = format_release(at, message, message->handing ? 3 : 2);
    return message->handing ? redlock_resp_integer(at, message->handing) : at;
}

char *redlock_format_inspect(char *at, const struct redlock_message *message) {
    const char *suffix = message->wait_suffix ? message->wait_suffix : "";
    return redlock_resp_bulk(begin_script(at, message, REDLOCK_SCRIPT_INSPECT, 1, 1), suffix, strlen(suffix));
}

char *redlock_format_list(char *at, const struct redlock_message *message) {
    static const char eval[] = "*9\r\n$4\r\nEVAL\r\n", no_keys[] = "$1\r\n0\r\n";
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_LIST];
    const struct redlock_page *page = message->page;
    const size_t pattern_size = strlen(page->pattern);
    char cursor[24];
    const int cursor_size = snprintf(cursor, sizeof cursor, "%" PRIu64, page->cursor);
    assert(cursor_size > 0 && (size_t)cursor_size < sizeof cursor);
    assert(script->source_size <= SCRIPT_SIZE_MAX && pattern_size <= REDLOCK_PATTERN_SIZE_MAX);
    at = literal(at, eval, sizeof eval - 1);
    at = redlock_resp_bulk(at, script->source, script->source_size);
    at = literal(at, no_keys, sizeof no_keys - 1);
    at = redlock_resp_bulk(at, cursor, (size_t)cursor_size);
    at = redlock_resp_bulk(at, page->pattern, pattern_size);
    at = redlock_resp_integer(at, page->count);
    at = format_wait_suffix(at, message);
    at = redlock_resp_bulk(at, message->fence_keys->suffix, message->fence_keys->suffix_size);
    return redlock_resp_integer(at, page->others);
}

char *redlock_format_fence(char *at, const struct redlock_message *message) {
    assert(message->fence != 0);
    at = begin_script(at, message, REDLOCK_SCRIPT_FENCE, 2, 3);
    at = format_counter(at, message);
    at = format_token(at, message);
    at = format_number(at, message->fence);
    return redlock_resp_integer(at, message->fence_keys->expiry_ms);
}

/* Scripts hand on any digits. The last ones are those of the seal. */
static char *format_id(char *at, uint32_t id) {
    at = redlock_resp_header(at, REDLOCK_ID_DIGITS + REDLOCK_SEAL_DIGITS);
    at = redlock_number_write(at, id, REDLOCK_ID_DIGITS);
    at = redlock_number_write(at, 0, REDLOCK_SEAL_DIGITS);
    return literal(at, "\r\n", 2);
}

__attribute__((noinline)) char *redlock_format_wait(char *at, const struct redlock_message *message) {
    const struct redlock_place *place = message->place;
    const size_t suffix_size = strlen(message->wait_suffix), channel_size = strlen(place->channel);
    assert(suffix_size != 0 && suffix_size <= REDLOCK_WAIT_SUFFIX_SIZE_MAX);
    assert(channel_size != 0 && channel_size <= REDLOCK_CHANNEL_SIZE_MAX && place->ticket <= REDLOCK_TICKET_MAX);
    at = begin_script(at, message, REDLOCK_SCRIPT_WAIT, 3, message->target->announced ? 10 : 9);
    at = format_key(at, message, message->wait_suffix, suffix_size, "", 0);
    at = format_key(at, message, message->wait_suffix, suffix_size, "er", 2);
    at = format_token(at, message);
    at = redlock_resp_integer(at, (int64_t)place->ticket);
    at = redlock_resp_integer(at, message->round);
    at = redlock_resp_integer(at, message->ttl_ms);
    at = redlock_resp_integer(at, place->stale_ms);
    at = redlock_resp_integer(at, place->queue_ttl_ms);
    at = redlock_resp_bulk(at, place->channel, channel_size);
    at = format_id(at, place->id);
    at = redlock_resp_integer(at, place->takes);
    return message->target->announced ? redlock_resp_integer(at, 1) : at;
}
