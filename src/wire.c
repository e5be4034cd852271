/* Bytes of a request, meaning of a reply. */
#include "wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/planted.h"
#include "resp.h"
#include "script.h"

/* Room for the headers and fixed words of any message, next to script, key and token. */
#define FRAME_SIZE_MAX  256
#define SCRIPT_SIZE_MAX 1024

_Static_assert(FRAME_SIZE_MAX + SCRIPT_SIZE_MAX + REDLOCK_RESOURCE_SIZE_MAX + REDLOCK_TOKEN_SIZE_MAX <=
                   REDLOCK_WIRE_SIZE_MAX,
               "a message fits");

static const struct redlock_text key_missing = {"the key is missing", 0};
static const struct redlock_text other_token = {"held under another token", 0};
static const struct redlock_text no_script = {"the node does not know the script", 0};

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

/* EVALSHA sha 1 key [token [ttl]], or EVAL with the source (R11). */
static char *format_script(char *at, const struct redlock_message *message, enum redlock_script_id id,
                           size_t arguments) {
    static const char by_sha[] = "$7\r\nEVALSHA\r\n", by_source[] = "$4\r\nEVAL\r\n", one_key[] = "$1\r\n1\r\n";
    const struct redlock_script *script = redlock_script_get(id);
    assert(script->source_size <= SCRIPT_SIZE_MAX);
    at = redlock_resp_array(at, 4 + arguments);
    if (message->by_source) {
        at = literal(at, by_source, sizeof by_source - 1);
        at = redlock_resp_bulk(at, script->source, script->source_size);
    } else {
        at = literal(at, by_sha, sizeof by_sha - 1);
        at = redlock_resp_bulk(at, script->sha1, REDLOCK_SHA1_SIZE);
    }
    at = literal(at, one_key, sizeof one_key - 1);
    at = redlock_resp_bulk(at, message->key, message->key_size);
    if (arguments >= 1) {
        at = redlock_resp_bulk(at, message->token, message->token_size);
    }
    if (arguments >= 2) {
        at = redlock_resp_integer(at, message->ttl_ms);
    }
    return at;
}

size_t redlock_wire_format(const struct redlock_message *message, char *buffer) {
    assert(message->key_size <= REDLOCK_RESOURCE_SIZE_MAX && message->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    char *end = buffer;
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        end = format_set(buffer, message);
        break;
    case REDLOCK_OP_EXTEND:
#ifdef REDLOCK_PLANTED_BUGS
        if (REDLOCK_PLANTED(EXTEND_SHORTENS)) {
            end = format_script(buffer, message, REDLOCK_SCRIPT_PLANTED_EXTEND, 2);
            break;
        }
#endif
        end = format_script(buffer, message, REDLOCK_SCRIPT_EXTEND, 2);
        break;
    case REDLOCK_OP_RELEASE:
#ifdef REDLOCK_PLANTED_BUGS
        if (REDLOCK_PLANTED(RELEASE_ANY_TOKEN)) {
            end = format_script(buffer, message, REDLOCK_SCRIPT_PLANTED_RELEASE, 1);
            break;
        }
#endif
        end = format_script(buffer, message, REDLOCK_SCRIPT_RELEASE, 1);
        break;
    case REDLOCK_OP_INSPECT:
        end = format_script(buffer, message, REDLOCK_SCRIPT_INSPECT, 0);
        break;
    case REDLOCK_OP_FENCE:
    case REDLOCK_OP_HEAL:
    case REDLOCK_OP_TIME:
    case REDLOCK_OP_NONE:
        break;
    }
    assert(end != buffer);
    return (size_t)(end - buffer);
}

static bool starts_with(const struct redlock_reply_value *value, const char *word) {
    size_t size = strlen(word);
    return value->size >= size && memcmp(value->bytes, word, size) == 0;
}

size_t redlock_wire_error(const struct redlock_reply_value *error, char buffer[REDLOCK_WIRE_ERROR_SIZE]) {
    /* To an unknown command a server answers with its arguments: a token, or a password. */
    static const char arguments[] = ", with args beginning with";
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

static void answer_error(const struct redlock_reply_value *error, struct redlock_answer *answer) {
    answer->vote = REDLOCK_VOTE_FAILED;
    if (starts_with(error, "NOSCRIPT")) {
        answer->no_script = true;
        answer->text = redlock_text_constant(&no_script);
        return;
    }
    char text[REDLOCK_WIRE_ERROR_SIZE];
    if (redlock_wire_error(error, text) == 0) {
        (void)snprintf(text, sizeof text, "an error without a text");
    }
    answer->text = redlock_text_new("%s", text);
}

/* A reply that this operation cannot have: nothing is known of what the node did (R20). */
static void answer_unexpected(const struct redlock_reply *reply, struct redlock_answer *answer) {
    static const char *const names[] = {[REDLOCK_REPLY_NONE] = "nothing",    [REDLOCK_REPLY_STATUS] = "a status",
                                        [REDLOCK_REPLY_ERROR] = "an error",  [REDLOCK_REPLY_INTEGER] = "an integer",
                                        [REDLOCK_REPLY_STRING] = "a string", [REDLOCK_REPLY_NIL] = "nil",
                                        [REDLOCK_REPLY_ARRAY] = "an array",  [REDLOCK_REPLY_OTHER] = "another type"};
    answer->vote = REDLOCK_VOTE_UNKNOWN;
    answer->text =
        redlock_text_new("the node answered out of protocol (%s); is it a Redis server?", names[reply->value.type]);
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

static void answer_inspect(const struct redlock_reply *reply, struct redlock_answer *answer) {
    const struct redlock_reply_value *holder = &reply->elements[0], *ttl = &reply->elements[1];
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != 2 || ttl->type != REDLOCK_REPLY_INTEGER) {
        answer_unexpected(reply, answer);
    } else if (holder->type == REDLOCK_REPLY_NIL) {
        answer->vote = REDLOCK_VOTE_DENIED;
    } else if (holder->type == REDLOCK_REPLY_STRING) {
        answer->vote = REDLOCK_VOTE_GRANTED;
        answer->holder = holder->bytes;
        answer->holder_size = holder->size;
        answer->holder_ttl_ms = ttl->integer;
    } else {
        answer_unexpected(reply, answer);
    }
}

void redlock_wire_answer(enum redlock_operation operation, const struct redlock_reply *reply,
                         struct redlock_answer *answer) {
    *answer = (struct redlock_answer){.vote = REDLOCK_VOTE_UNKNOWN};
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        answer_error(&reply->value, answer);
        return;
    }
    switch (operation) {
    case REDLOCK_OP_ACQUIRE:
        answer_set(reply, answer);
        break;
    case REDLOCK_OP_EXTEND:
    case REDLOCK_OP_RELEASE:
        answer_compared(reply, answer);
        break;
    case REDLOCK_OP_INSPECT:
        answer_inspect(reply, answer);
        break;
    case REDLOCK_OP_FENCE:
    case REDLOCK_OP_HEAL:
    case REDLOCK_OP_TIME:
    case REDLOCK_OP_NONE:
        answer_unexpected(reply, answer);
        break;
    }
}
