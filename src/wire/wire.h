/* The bytes of each request, and what each reply means as a vote. Pure. */
#ifndef REDLOCK_WIRE_WIRE_H
#define REDLOCK_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/message.h"
#include "wire/reply.h"

/* The kind of a request decides which replies it can have. A plain one has its operation's
 * number. */
enum redlock_reply_kind {
    REDLOCK_KIND_NONE = REDLOCK_OP_NONE, /* no reply is a vote */
    REDLOCK_KIND_ACQUIRE = REDLOCK_OP_ACQUIRE,
    REDLOCK_KIND_EXTEND = REDLOCK_OP_EXTEND,
    REDLOCK_KIND_RELEASE = REDLOCK_OP_RELEASE,
    REDLOCK_KIND_INSPECT = REDLOCK_OP_INSPECT,
    REDLOCK_KIND_FENCE = REDLOCK_OP_FENCE,
    REDLOCK_KIND_HEAL = REDLOCK_OP_HEAL,
    REDLOCK_KIND_TIME = REDLOCK_OP_TIME,
    REDLOCK_KIND_WAIT = REDLOCK_OP_WAIT,
    REDLOCK_KIND_LIST = REDLOCK_OP_LIST,
    REDLOCK_KIND_ACQUIRE_FENCED,
    REDLOCK_KIND_ACQUIRE_TIMED,
    REDLOCK_KIND_ACQUIRE_FENCED_TIMED,
    REDLOCK_KIND_EXTEND_TIMED,
    REDLOCK_KIND_RELEASE_DELETING,
    REDLOCK_KIND_ACQUIRE_NAMING,
    REDLOCK_KIND_ACQUIRE_NAMING_TWICE, /* has two replies: redlock_naming_judge() */
    REDLOCK_KIND_COUNT
};

/* Returns whether it is an ACQUIRE with GET, sent once or twice. */
static inline bool redlock_wire_is_naming(enum redlock_reply_kind kind) {
    return kind == REDLOCK_KIND_ACQUIRE_NAMING || kind == REDLOCK_KIND_ACQUIRE_NAMING_TWICE;
}

enum redlock_operation redlock_wire_operation(enum redlock_reply_kind kind);

/* Writes the message as RESP into buffer (REDLOCK_WIRE_SIZE_MAX bytes). Returns the length.
 * Until the reply comes, the caller keeps only the kind. */
size_t redlock_wire_format(const struct redlock_message *message, char *buffer, enum redlock_reply_kind *kind);

/* The same message for this node: a WAIT gets its seal. */
void redlock_wire_seal(const struct redlock_message *message, unsigned node, char *bytes, size_t size);

/*
 * Reads a reply as a vote, from a node with this password (NULL for none). A reply that such a
 * request cannot have is UNKNOWN and never counts (R20). answer->text is a new reference that the
 * caller drops. answer->holder points into the reply. The caller sets the times: read_ns, and those
 * of the clock if server_us is not 0.
 */
void redlock_wire_answer(enum redlock_reply_kind kind, const struct redlock_reply *reply, const char *password,
                         struct redlock_answer *answer);

#endif
