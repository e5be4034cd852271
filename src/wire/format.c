/* The bytes of each kind of request. */
#include "wire/format.h"

#include <assert.h>
#include <string.h>

#include "core/fence.h"
#include "core/number.h"
#include "wire/resp.h"
#include "wire/script.h"
#include "wire/slots.h"

/* Room for the headers and fixed words of any message, besides script, key and token. */
#define FRAME_SIZE_MAX  384
#define SCRIPT_SIZE_MAX 5600

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

static inline char *format_token(char *at, const struct redlock_message *message) {
    return redlock_resp_bulk(at, message->token, message->token_size);
}

/* SET key token NX PX ttl, as redsync, node-redlock and others do. Their locks exclude ours. */
static inline char *format_set(char *at, const struct redlock_message *message, bool gets) {
    static const char set[] = "*6\r\n$3\r\nSET\r\n", set_get[] = "*7\r\n$3\r\nSET\r\n";
    static const char flags[] = "$2\r\nNX\r\n$2\r\nPX\r\n", get[] = "$3\r\nGET\r\n";
    at = literal(at, gets ? set_get : set, sizeof set - 1);
    at = format_lock(at, message);
    at = format_token(at, message);
    at = literal(at, flags, sizeof flags - 1);
    at = redlock_resp_integer(at, message->ttl_ms);
    return gets ? literal(at, get, sizeof get - 1) : at;
}

/* A command of newer servers, in place of the script. Kept apart, like format_wait(). */
__attribute__((noinline)) static char *format_deleting(char *at, const struct redlock_message *message) {
    static const char delex[] = "*4\r\n$5\r\nDELEX\r\n", delifeq[] = "*3\r\n$7\r\nDELIFEQ\r\n";
    static const char if_equal[] = "$4\r\nIFEQ\r\n";
    const bool is_delex = message->form.deleting == REDLOCK_DELETING_DELEX;
    assert(message->by_try && !message->by_source && message->handing == REDLOCK_HAND_OVER);
    assert(!message->target->announced);
    at = is_delex ? literal(at, delex, sizeof delex - 1) : literal(at, delifeq, sizeof delifeq - 1);
    at = format_lock(at, message);
    at = is_delex ? literal(at, if_equal, sizeof if_equal - 1) : at;
    return format_token(at, message);
}

static char *format_time(char *at) {
    static const char command[] = "*1\r\n$4\r\nTIME\r\n";
    return literal(at, command, sizeof command - 1);
}

/* Writes EVALSHA or EVAL (R11), the script, and the number of keys. The caller appends the keys and
 * the arguments. */
static char *begin_keys(char *at, const struct redlock_message *message, const struct redlock_script *script,
                        size_t keys, size_t arguments) {
    assert(keys >= 1 && keys <= 9);
    static const char by_sha[] = "$7\r\nEVALSHA\r\n$40\r\n", by_source[] = "$4\r\nEVAL\r\n";
    const char count[] = {'\r', '\n', '$', '1', '\r', '\n', (char)('0' + keys), '\r', '\n'};
    at = redlock_resp_array(at, 3 + keys + arguments);
    if (message->by_source) {
        assert(script->source_size <= SCRIPT_SIZE_MAX);
        at = literal(at, by_source, sizeof by_source - 1);
        at = redlock_resp_header(at, script->source_size);
        at = literal(at, script->source, script->source_size);
    } else {
        at = literal(at, by_sha, sizeof by_sha - 1);
        at = literal(at, script->sha1, REDLOCK_SHA1_SIZE);
    }
    return literal(at, count, sizeof count);
}

/* The same with the first key, the lock. */
static char *begin(char *at, const struct redlock_message *message, const struct redlock_script *script, size_t keys,
                   size_t arguments) {
    return format_lock(begin_keys(at, message, script, keys, arguments), message);
}

static char *begin_script(char *at, const struct redlock_message *message, enum redlock_script_id id, size_t keys,
                          size_t arguments) {
    return begin(at, message, redlock_script_get(id), keys, arguments);
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

static char *format_number(char *at, uint64_t number) {
    at = redlock_resp_header(at, REDLOCK_FENCE_DIGITS);
    redlock_fence_format(number, at);
    return literal(at + REDLOCK_FENCE_DIGITS, "\r\n", 2);
}

static char *format_wait_suffix(char *at, const struct redlock_message *message) {
    const size_t suffix_size = strlen(message->wait_suffix);
    assert(suffix_size != 0 && suffix_size <= REDLOCK_WAIT_SUFFIX_SIZE_MAX);
    return redlock_resp_bulk(at, message->wait_suffix, suffix_size);
}

/* In place of SET, and of the scripts of a lock that one has alone. */
__attribute__((noinline)) static char *format_share(char *at, const struct redlock_message *message, unsigned kind) {
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_SHARE];
    const bool fenced = (kind & REDLOCK_KIND_FENCED) != 0;
    const char *what = message->operation == REDLOCK_OP_ACQUIRE  ? "$1\r\nt\r\n"
                       : message->operation == REDLOCK_OP_HEAL   ? "$1\r\nh\r\n"
                       : message->handing == REDLOCK_HAND_NOBODY ? "$1\r\nc\r\n"
                                                                 : "$1\r\nk\r\n";
    at = begin(at, message, script, fenced ? 2 : 1, fenced ? 7 : 5);
    at = fenced ? format_counter(at, message) : at;
    at = format_token(at, message);
    at = redlock_resp_integer(at, message->ttl_ms);
    at = format_wait_suffix(literal(at, what, 7), message);
    at = redlock_resp_integer(at, message->timed && message->operation != REDLOCK_OP_HEAL);
    return fenced ? redlock_resp_integer(format_number(at, message->fence), message->fence_keys->expiry_ms) : at;
}

/* A fencing token or the node's time needs a script, which sets the key just as SET NX PX
 * does. */
static char *format_acquire_script(char *at, const struct redlock_message *message, bool fenced) {
    assert(message->fence != 0 || message->timed);
    at = begin_script(at, message, REDLOCK_SCRIPT_ACQUIRE, fenced ? 2 : 1, 5);
    at = fenced ? format_counter(at, message) : at;
    at = format_token(at, message);
    at = redlock_resp_integer(at, message->ttl_ms);
    at = fenced ? format_number(at, message->fence) : redlock_resp_bulk(at, "", 0);
    at = redlock_resp_integer(at, fenced ? message->fence_keys->expiry_ms : 0);
    return redlock_resp_integer(at, message->timed);
}

static inline char *format_acquire(char *at, const struct redlock_message *message, unsigned kind) {
    if (kind & (REDLOCK_KIND_FENCED | REDLOCK_KIND_TIMED | REDLOCK_KIND_SHARED)) {
        return kind & REDLOCK_KIND_SHARED ? format_share(at, message, kind)
                                          : format_acquire_script(at, message, (kind & REDLOCK_KIND_FENCED) != 0);
    }
    at = kind & REDLOCK_KIND_TWICE ? format_set(at, message, true) : at;
    return format_set(at, message, (kind & REDLOCK_KIND_HOLDER_QUERY) != 0);
}

static char *format_extend(char *at, const struct redlock_message *message, unsigned kind) {
    if (kind & REDLOCK_KIND_SHARED) {
        return format_share(at, message, kind);
    }
    at = begin_script(at, message, REDLOCK_SCRIPT_EXTEND, 1, message->timed ? 3 : 2);
    at = format_token(at, message);
    at = redlock_resp_integer(at, message->ttl_ms);
    return message->timed ? redlock_resp_integer(at, 1) : at;
}

/* strcmp() would cost each release twice as much. */
static inline bool has_default_suffix(const struct redlock_message *message) {
    static const char suffix[] = REDLOCK_WAIT_SUFFIX;
    size_t i = 0;
    while (i < sizeof suffix && message->wait_suffix[i] == suffix[i]) {
        i++;
    }
    return i == sizeof suffix;
}

static char *format_release(char *at, const struct redlock_message *message) {
    const bool announced = message->target->announced;
    if (message->by_try) {
        assert(!announced && message->handing == REDLOCK_HAND_OVER);
        const bool is_default = has_default_suffix(message);
        at = format_token(begin_script(at, message, REDLOCK_SCRIPT_RELEASE, 1, is_default ? 1 : 2), message);
        return is_default ? at : format_wait_suffix(at, message);
    }
    at = begin_script(at, message, REDLOCK_SCRIPT_RELEASE, 1, announced ? 4 : 3);
    at = format_wait_suffix(format_token(at, message), message);
    at = message->handing == REDLOCK_HAND_OVER ? literal(at, "$1\r\n0\r\n", 7)
                                               : redlock_resp_integer(at, message->handing);
    return announced ? redlock_resp_integer(at, 1) : at;
}

static char *format_gate(char *at, const struct redlock_message *message) {
    const struct redlock_gate *gate = message->gate;
    if (!gate) {
        return redlock_resp_integer(redlock_resp_bulk(redlock_resp_bulk(at, "", 0), "", 0), 0);
    }
    const size_t channel_size = strlen(gate->channel);
    assert(channel_size <= REDLOCK_CHANNEL_SIZE_MAX && gate->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    at = redlock_resp_bulk(at, gate->token, gate->token_size);
    at = redlock_resp_header(at, REDLOCK_ID_DIGITS + 1 + channel_size);
    at = redlock_number_write(at, gate->id, REDLOCK_ID_DIGITS);
    *at++ = ' ';
    return redlock_resp_integer(literal(literal(at, gate->channel, channel_size), "\r\n", 2), gate->queue_ttl_ms);
}

static char *format_looks(char *at, const struct redlock_slots *slots) {
    at = redlock_resp_integer(at, slots->limit);
    at = redlock_resp_integer(at, slots->first);
    return redlock_resp_integer(at, slots->window);
}

__attribute__((noinline)) static char *format_slots(char *at, const struct redlock_message *message) {
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_SLOTS];
    const struct redlock_slots *slots = redlock_target_slots(message->target);
    const bool all = !slots->taken || slots->others;
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        at = literal(format_token(begin(at, message, script, 1, 11), message), "$1\r\nt\r\n", 7);
        at = format_looks(redlock_resp_integer(at, message->ttl_ms), slots);
        at = redlock_resp_integer(at, slots->permits);
        return format_gate(format_wait_suffix(at, message), message);
    case REDLOCK_OP_RELEASE:
        at = literal(format_token(begin(at, message, script, 1, all ? 7 : 4), message), "$1\r\ng\r\n", 7);
        at = format_wait_suffix(redlock_slots_format(at, slots), message);
        return all ? format_looks(at, slots) : at;
    default:
        at = format_token(begin(at, message, script, 1, message->timed ? 5 : 4), message);
        at = literal(at, message->operation == REDLOCK_OP_HEAL ? "$1\r\nh\r\n" : "$1\r\nk\r\n", 7);
        at = redlock_slots_format(redlock_resp_integer(at, message->ttl_ms), slots);
        return message->timed ? redlock_resp_integer(at, 1) : at;
    }
}

static char *format_inspect(char *at, const struct redlock_message *message) {
    const char *suffix = message->wait_suffix ? message->wait_suffix : "";
    const size_t suffix_size = strlen(suffix);
    assert(suffix_size <= REDLOCK_WAIT_SUFFIX_SIZE_MAX);
    return redlock_resp_bulk(begin_script(at, message, REDLOCK_SCRIPT_INSPECT, 1, 1), suffix, suffix_size);
}

/* By source only: people list locks now and then, so no connection loads this script. */
static char *format_list(char *at, const struct redlock_message *message) {
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_LIST];
    const struct redlock_page *page = message->page;
    const size_t pattern_size = strlen(page->pattern);
    assert(script->source_size <= SCRIPT_SIZE_MAX && pattern_size <= REDLOCK_PATTERN_SIZE_MAX);
    assert(page->count > 0 && message->fence_keys->suffix_size <= REDLOCK_FENCE_SUFFIX_SIZE_MAX);
    at = redlock_resp_array(at, 9);
    at = redlock_resp_bulk(at, "EVAL", 4);
    at = redlock_resp_bulk(at, script->source, script->source_size);
    at = redlock_resp_integer(at, 0); /* keys */
    at = redlock_resp_number(at, page->cursor);
    at = redlock_resp_bulk(at, page->pattern, pattern_size);
    at = redlock_resp_integer(at, page->count);
    at = format_wait_suffix(at, message);
    at = redlock_resp_bulk(at, message->fence_keys->suffix, message->fence_keys->suffix_size);
    return redlock_resp_integer(at, page->others);
}

static char *format_fence(char *at, const struct redlock_message *message) {
    assert(message->fence != 0);
    at = begin_keys(at, message, redlock_script_get(REDLOCK_SCRIPT_FENCE), 2, 3);
    at = message->slots ? redlock_slots_format_key(at, message->target, 0) : format_lock(at, message);
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

__attribute__((noinline)) static char *format_wait(char *at, const struct redlock_message *message) {
    const struct redlock_place *place = message->place;
    const size_t suffix_size = strlen(message->wait_suffix), channel_size = strlen(place->channel);
    assert(suffix_size != 0 && suffix_size <= REDLOCK_WAIT_SUFFIX_SIZE_MAX);
    assert(channel_size != 0 && channel_size <= REDLOCK_CHANNEL_SIZE_MAX && place->ticket <= REDLOCK_TICKET_MAX);
    at = begin_script(at, message, REDLOCK_SCRIPT_WAIT, 3, message->target->announced ? 10 : 9);
    at = format_key(at, message, message->wait_suffix, suffix_size, "", 0);
    at = format_key(at, message, message->wait_suffix, suffix_size, "er", 2);
    at = format_token(at, message);
    at = redlock_resp_number(at, place->ticket);
    at = redlock_resp_integer(at, message->round);
    at = redlock_resp_integer(at, message->ttl_ms);
    at = redlock_resp_integer(at, place->stale_ms);
    at = redlock_resp_integer(at, place->queue_ttl_ms);
    at = redlock_resp_bulk(at, place->channel, channel_size);
    at = format_id(at, place->id);
    at = redlock_resp_integer(at, place->takes);
    return message->target->announced ? redlock_resp_integer(at, 1) : at;
}

char *redlock_format(char *at, const struct redlock_message *message, unsigned kind) {
    if (kind & REDLOCK_KIND_SLOTS) {
        return format_slots(at, message);
    }
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        return format_acquire(at, message, kind);
    case REDLOCK_OP_EXTEND:
        return format_extend(at, message, kind);
    case REDLOCK_OP_RELEASE:
        return kind & REDLOCK_KIND_DELETING ? format_deleting(at, message) : format_release(at, message);
    case REDLOCK_OP_INSPECT:
        return format_inspect(at, message);
    case REDLOCK_OP_FENCE:
        return format_fence(at, message);
    case REDLOCK_OP_HEAL:
        return kind & REDLOCK_KIND_SHARED ? format_share(at, message, kind) : format_set(at, message, false);
    case REDLOCK_OP_TIME:
        return format_time(at);
    case REDLOCK_OP_WAIT:
        return format_wait(at, message);
    case REDLOCK_OP_LIST:
        return format_list(at, message);
    case REDLOCK_OP_NONE:
        break;
    }
    assert(false);
    return at;
}
