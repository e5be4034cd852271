/* The kinds of requests. */
#include "wire/wire.h"

#include <assert.h>
#include <stdio.h>

#include "core/number.h"
#include "wire/error.h"
#include "wire/format.h"
#include "wire/holder_query.h"
#include "wire/read.h"

/* A take tells the time in any case. */
__attribute__((noinline, cold)) static unsigned kind_of_slots(const struct redlock_message *message) {
    const unsigned operation = message->operation, timed = message->timed ? REDLOCK_KIND_TIMED : 0;
    switch (message->operation) {
    case REDLOCK_OP_EXTEND:
        return operation | REDLOCK_KIND_SLOTS | timed;
    case REDLOCK_OP_ACQUIRE:
    case REDLOCK_OP_HEAL:
    case REDLOCK_OP_RELEASE:
        return operation | REDLOCK_KIND_SLOTS;
    default:
        return operation;
    }
}

static unsigned shared_of(const struct redlock_message *message) {
    return message->shared ? REDLOCK_KIND_SHARED : 0;
}

static unsigned kind_of(const struct redlock_message *message) {
    static const unsigned holder_queries[REDLOCK_HOLDER_QUERY_COUNT] = {
        0, REDLOCK_KIND_HOLDER_QUERY | REDLOCK_KIND_TWICE, REDLOCK_KIND_HOLDER_QUERY};
    const unsigned operation = message->operation, timed = message->timed ? REDLOCK_KIND_TIMED : 0;
    if (message->slots) {
        return kind_of_slots(message);
    }
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        if (message->fence != 0) {
            return operation | REDLOCK_KIND_FENCED | timed | shared_of(message);
        }
        if (message->shared) {
            return operation | REDLOCK_KIND_SHARED | timed;
        }
        return operation | (timed != 0 || message->by_source ? timed : holder_queries[message->form.holder_query]);
    case REDLOCK_OP_EXTEND:
        return operation | timed | shared_of(message);
    case REDLOCK_OP_HEAL:
        return operation | shared_of(message);
    case REDLOCK_OP_RELEASE:
        return message->by_try && message->form.deleting != REDLOCK_DELETING_SCRIPT ? operation | REDLOCK_KIND_DELETING
                                                                                    : operation;
    default:
        return operation;
    }
}

size_t redlock_wire_format(const struct redlock_message *message, char *buffer, unsigned *kind) {
    assert(message->target == NULL || redlock_target_key_size(message->target) <= REDLOCK_RESOURCE_SIZE_MAX);
    assert(message->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    *kind = kind_of(message);
    return (size_t)(redlock_format(buffer, message, *kind) - buffer);
}

/* Behind the id there are one or two arguments of one digit. */
void redlock_wire_seal(const struct redlock_message *message, unsigned node, char *bytes, size_t size) {
    static const size_t digit = sizeof "$1\r\n1\r\n" - 1;
    const size_t behind = 2 + digit * (message->target->announced ? 2 : 1);
    assert(node < REDLOCK_NODES_MAX);
    assert(message->operation == REDLOCK_OP_WAIT && size > behind + REDLOCK_SEAL_DIGITS);
    (void)redlock_number_write(bytes + size - behind - REDLOCK_SEAL_DIGITS, message->place->seals[node],
                               REDLOCK_SEAL_DIGITS);
}

static const struct redlock_text no_script = {.string = "the node does not know the script",
                                              .cause = REDLOCK_CAUSE_NOSCRIPT};

__attribute__((noinline, cold)) static void read_error(const struct redlock_reply_value *error, const char *password,
                                                       struct redlock_answer *answer) {
    assert(error->type == REDLOCK_REPLY_ERROR);
    const enum redlock_cause cause = redlock_wire_cause(error);
    answer->vote = REDLOCK_VOTE_FAILED;
    if (cause == REDLOCK_CAUSE_NOSCRIPT) {
        answer->again = REDLOCK_AGAIN_BY_SOURCE;
        answer->text = redlock_text_constant(&no_script);
        return;
    }
    char text[REDLOCK_WIRE_ERROR_SIZE];
    if (redlock_wire_error(error, password, text) == 0) {
        (void)snprintf(text, sizeof text, "an error without a text");
    }
    answer->text = redlock_text_new(cause, "%s", text);
}

__attribute__((noinline, cold)) static void read_unexpected(const struct redlock_reply *reply,
                                                            struct redlock_answer *answer) {
    static const char *const names[] = {[REDLOCK_REPLY_NONE] = "nothing",    [REDLOCK_REPLY_STATUS] = "a status",
                                        [REDLOCK_REPLY_ERROR] = "an error",  [REDLOCK_REPLY_INTEGER] = "an integer",
                                        [REDLOCK_REPLY_STRING] = "a string", [REDLOCK_REPLY_NIL] = "nil",
                                        [REDLOCK_REPLY_ARRAY] = "an array",  [REDLOCK_REPLY_OTHER] = "another type"};
    assert(reply->value.type < sizeof names / sizeof *names);
    answer->vote = REDLOCK_VOTE_UNKNOWN;
    answer->fenced = false;
    answer->counter = 0;
    answer->clock.server_us = 0;
    answer->text =
        redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE, "the node answered out of protocol (%s); is it a Redis server?",
                         names[reply->value.type]);
}

void redlock_wire_answer(unsigned kind, const struct redlock_reply *reply, const char *password,
                         struct redlock_answer *answer) {
    redlock_answer_begin(answer, REDLOCK_VOTE_UNKNOWN);
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        read_error(&reply->value, password, answer);
        answer->again = kind & REDLOCK_KIND_DELETING ? REDLOCK_AGAIN_BY_SOURCE : answer->again;
        if (kind & REDLOCK_KIND_HOLDER_QUERY) {
            redlock_holder_query_read_error(&reply->value, answer);
        }
    } else if (!redlock_read(kind, reply, answer)) {
        read_unexpected(reply, answer);
    }
}
