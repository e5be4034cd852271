/* The kinds of requests. */
#include "wire/wire.h"

#include <assert.h>

#include "wire/format.h"
#include "wire/naming.h"
#include "wire/read.h"

/*
 * Kind, operation, redlock_format_…, redlock_read_…. A new kind needs a row and these functions.
 * The rows become cases of switches, because function pointers cost 1 % more instructions per lock.
 * A function that reads for two rows costs as much. The compiler inlines neither.
 */
#define KINDS(ROW)                                                                                                     \
    ROW(ACQUIRE, ACQUIRE, set, acquire)                                                                                \
    ROW(ACQUIRE_FENCED, ACQUIRE, acquire, acquire_fenced)                                                              \
    ROW(ACQUIRE_TIMED, ACQUIRE, acquire, acquire_timed)                                                                \
    ROW(ACQUIRE_FENCED_TIMED, ACQUIRE, acquire, acquire_fenced_timed)                                                  \
    ROW(EXTEND, EXTEND, extend, extend)                                                                                \
    ROW(EXTEND_TIMED, EXTEND, extend, extend_timed)                                                                    \
    ROW(RELEASE, RELEASE, release, release)                                                                            \
    ROW(RELEASE_DELETING, RELEASE, deleting, deleting)                                                                 \
    ROW(ACQUIRE_NAMING, ACQUIRE, naming, naming)                                                                       \
    ROW(ACQUIRE_NAMING_TWICE, ACQUIRE, naming_twice, naming_twice)                                                     \
    ROW(INSPECT, INSPECT, inspect, inspect)                                                                            \
    ROW(FENCE, FENCE, fence, fence)                                                                                    \
    ROW(HEAL, HEAL, set, heal)                                                                                         \
    ROW(TIME, TIME, time, time)                                                                                        \
    ROW(WAIT, WAIT, wait, wait)                                                                                        \
    ROW(LIST, LIST, list, list)

/* kind_of() takes an operation's number for that of its plain kind; three have other kinds, too. */
#define SAME_NUMBER(kind, operation, format, read)                                                                     \
    _Static_assert((int)REDLOCK_KIND_##kind == (int)REDLOCK_OP_##operation ||                                          \
                       REDLOCK_OP_##operation == REDLOCK_OP_ACQUIRE || REDLOCK_OP_##operation == REDLOCK_OP_EXTEND ||  \
                       REDLOCK_OP_##operation == REDLOCK_OP_RELEASE,                                                   \
                   "kind and operation need the same number");
KINDS(SAME_NUMBER)

enum redlock_operation redlock_wire_operation(enum redlock_reply_kind kind) {
#define OPERATION(kind, operation, format, read)                                                                       \
    case REDLOCK_KIND_##kind:                                                                                          \
        return REDLOCK_OP_##operation;
    switch (kind) {
        KINDS(OPERATION)
    case REDLOCK_KIND_NONE:
    case REDLOCK_KIND_COUNT:
        break;
    }
    return REDLOCK_OP_NONE;
}

static enum redlock_reply_kind kind_of(const struct redlock_message *message, enum redlock_naming naming) {
    static const enum redlock_reply_kind kinds[REDLOCK_NAMING_COUNT] = {
        REDLOCK_KIND_ACQUIRE, REDLOCK_KIND_ACQUIRE_NAMING_TWICE, REDLOCK_KIND_ACQUIRE_NAMING};
    switch (message->operation) {
    case REDLOCK_OP_ACQUIRE:
        if (message->fence != 0) {
            return message->timed ? REDLOCK_KIND_ACQUIRE_FENCED_TIMED : REDLOCK_KIND_ACQUIRE_FENCED;
        }
        if (message->timed) {
            return REDLOCK_KIND_ACQUIRE_TIMED;
        }
        return message->by_source ? REDLOCK_KIND_ACQUIRE : kinds[naming];
    case REDLOCK_OP_EXTEND:
        return message->timed ? REDLOCK_KIND_EXTEND_TIMED : REDLOCK_KIND_EXTEND;
    case REDLOCK_OP_RELEASE:
        return message->deleting == REDLOCK_DELETING_SCRIPT ? REDLOCK_KIND_RELEASE : REDLOCK_KIND_RELEASE_DELETING;
    default:
        return (enum redlock_reply_kind)message->operation;
    }
}

size_t redlock_wire_format(const struct redlock_message *message, enum redlock_naming naming, char *buffer,
                           enum redlock_reply_kind *kind) {
#define FORMAT(kind, operation, format, read)                                                                          \
    case REDLOCK_KIND_##kind:                                                                                          \
        return (size_t)(redlock_format_##format(buffer, message) - buffer);
    assert(message->target == NULL ||
           (message->target->count == 1 && redlock_target_key_size(message->target) <= REDLOCK_RESOURCE_SIZE_MAX));
    assert(message->token_size <= REDLOCK_TOKEN_SIZE_MAX);
    *kind = kind_of(message, naming);
    switch (*kind) {
        KINDS(FORMAT)
    case REDLOCK_KIND_NONE:
    case REDLOCK_KIND_COUNT:
        break;
    }
    assert(false);
    return 0;
}

/* Behind the id there are one or two arguments of one digit. */
void redlock_wire_seal(const struct redlock_message *message, unsigned node, char *bytes, size_t size) {
    static const size_t digit = sizeof "$1\r\n1\r\n" - 1;
    const size_t behind = 2 + digit * (message->target->announced ? 2 : 1);
    assert(message->operation == REDLOCK_OP_WAIT && size > behind + REDLOCK_SEAL_DIGITS);
    (void)redlock_format_digits(bytes + size - behind - REDLOCK_SEAL_DIGITS, message->place->seals[node],
                                REDLOCK_SEAL_DIGITS);
}

void redlock_wire_answer(enum redlock_reply_kind kind, const struct redlock_reply *reply, const char *password,
                         struct redlock_answer *answer) {
#define READ(kind, operation, format, read)                                                                            \
    case REDLOCK_KIND_##kind:                                                                                          \
        redlock_read_##read(reply, answer);                                                                            \
        return;
    /* Set only what every caller reads: this runs for each vote. */
    answer->vote = REDLOCK_VOTE_UNKNOWN;
    answer->no_script = answer->fenced = answer->accepted = answer->handed_over = false;
    answer->counter = 0;
    answer->text = NULL;
    answer->clock.server_us = 0;
    if (reply->value.type == REDLOCK_REPLY_ERROR) {
        redlock_read_error(&reply->value, password, answer);
        answer->no_script |= kind == REDLOCK_KIND_RELEASE_DELETING;
        if (redlock_wire_is_naming(kind)) {
            redlock_naming_read_error(&reply->value, answer);
        }
        return;
    }
    switch (kind) {
        KINDS(READ)
    case REDLOCK_KIND_NONE:
    case REDLOCK_KIND_COUNT:
        break;
    }
    redlock_read_unexpected(reply, answer);
}
