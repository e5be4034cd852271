/* The kinds of requests. */
#include "wire/wire.h"

#include <assert.h>

#include "core/number.h"
#include "wire/format.h"
#include "wire/holder_query.h"
#include "wire/read.h"

static unsigned kind_of(const struct redlock_message *message) {
    static const unsigned holder_queries[REDLOCK_HOLDER_QUERY_COUNT] = {
        0, REDLOCK_KIND_HOLDER_QUERY | REDLOCK_KIND_TWICE, REDLOCK_KIND_HOLDER_QUERY};
    const unsigned operation = message->operation, timed = message->timed ? REDLOCK_KIND_TIMED : 0;
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        if (message->fence != 0) {
            return operation | REDLOCK_KIND_FENCED | timed;
        }
        return operation | (timed != 0 || message->by_source ? timed : holder_queries[message->form.holder_query]);
    case REDLOCK_OP_EXTEND:
        return operation | timed;
    case REDLOCK_OP_RELEASE:
        return message->only_deletes && message->form.deleting != REDLOCK_DELETING_SCRIPT
                   ? operation | REDLOCK_KIND_DELETING
                   : operation;
    default:
        return operation;
    }
}

static char *format(char *at, const struct redlock_message *message, unsigned kind) {
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        return redlock_format_acquire(at, message, kind);
    case REDLOCK_OP_EXTEND:
        return redlock_format_extend(at, message);
    case REDLOCK_OP_RELEASE:
        return redlock_format_release(at, message, kind);
    case REDLOCK_OP_INSPECT:
        return redlock_format_inspect(at, message);
    case REDLOCK_OP_FENCE:
        return redlock_format_fence(at, message);
    case REDLOCK_OP_HEAL:
        return redlock_format_set(at, message);
    case REDLOCK_OP_TIME:
        return redlock_format_time(at);
    case REDLOCK_OP_WAIT:
        return redlock_format_wait(at, message);
    case REDLOCK_OP_LIST:
        return redlock_format_list(at, message);
    case REDLOCK_OP_NONE:
        break;
    }
    assert(false);
    return at;
}

size_t redlock_wire_format(const struct redlock_message *message, char *buffer, unsigned *kind) {
    assert(message->target == NULL || redlock_target_key_size(message->target) <= REDLOCK_RESOURCE_SIZE_MAX);
    assert(message->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    *kind = kind_of(message);
    return (size_t)(format(buffer, message, *kind) - buffer);
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

/* What each lock has comes first. Function pointers would cost 1 % more instructions per lock. */
void redlock_wire_answer(unsigned kind, const struct redlock_reply *reply, const char *password,
                         struct redlock_answer *answer) {
    const unsigned operation = kind & REDLOCK_KIND_OPERATION;
    /* Set only what every caller reads: this runs for each vote. */
    answer->vote = REDLOCK_VOTE_UNKNOWN;
    answer->no_script = answer->fenced = answer->accepted = answer->handed_over = false;
    answer->named = REDLOCK_NAMED_NOT;
    answer->counter = 0;
    answer->text = NULL;
    answer->clock.server_us = 0;
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        redlock_read_error(&reply->value, password, answer);
        answer->no_script |= (kind & REDLOCK_KIND_DELETING) != 0;
        if (kind & REDLOCK_KIND_HOLDER_QUERY) {
            redlock_holder_query_read_error(&reply->value, answer);
        }
    } else if (operation == REDLOCK_OP_ACQUIRE) {
        redlock_read_acquire(reply, kind, answer);
    } else if (operation == REDLOCK_OP_RELEASE) {
        redlock_read_release(reply, kind, answer);
    } else if (operation == REDLOCK_OP_EXTEND) {
        redlock_read_extend(reply, kind, answer);
    } else {
        switch (operation) {
        case REDLOCK_OP_INSPECT:
            redlock_read_inspect(reply, answer);
            break;
        case REDLOCK_OP_FENCE:
            redlock_read_fence(reply, answer);
            break;
        case REDLOCK_OP_HEAL:
            redlock_read_set(reply, answer);
            break;
        case REDLOCK_OP_TIME:
            redlock_read_time(reply, answer);
            break;
        case REDLOCK_OP_WAIT:
            redlock_read_wait(reply, answer);
            break;
        case REDLOCK_OP_LIST:
            redlock_read_list(reply, answer);
            break;
        default:
            redlock_read_unexpected(reply, answer);
        }
    }
}
