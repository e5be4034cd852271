/* The bytes of each request, and what each reply means as a vote. Pure. */
#ifndef REDLOCK_WIRE_WIRE_H
#define REDLOCK_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/message.h"
#include "wire/reply.h"

static inline enum redlock_operation redlock_wire_operation(unsigned kind) {
    return (enum redlock_operation)(kind & REDLOCK_KIND_OPERATION);
}

/* Writes the message as RESP into buffer (REDLOCK_WIRE_SIZE_MAX bytes). Returns the length.
 * Until the reply comes, the caller keeps only the kind. */
size_t redlock_wire_format(const struct redlock_message *message, char *buffer, unsigned *kind);

/* The same message for this node: a WAIT gets its seal. */
void redlock_wire_seal(const struct redlock_message *message, unsigned node, char *bytes, size_t size);

/* Whether the reply is a grant and says nothing else, as most are. redlock_wire_answer() reads the
 * same in it. */
static inline bool redlock_wire_grants(unsigned kind, const struct redlock_reply_value *value) {
    switch (value->type) {
    case REDLOCK_REPLY_NIL:
        return kind == (REDLOCK_OP_ACQUIRE | REDLOCK_KIND_HOLDER_QUERY);
    case REDLOCK_REPLY_INTEGER:
        return value->integer == 1 && (kind == REDLOCK_OP_RELEASE || kind == REDLOCK_OP_EXTEND ||
                                       kind == (REDLOCK_OP_RELEASE | REDLOCK_KIND_DELETING));
    case REDLOCK_REPLY_STATUS:
        return kind == REDLOCK_OP_ACQUIRE && redlock_reply_is_ok(value);
    default:
        return false;
    }
}

/*
 * Reads a reply as a vote, from a node with this password (NULL for none). A reply that such a
 * request cannot have is UNKNOWN and never counts (R20). answer->text is a new reference that the
 * caller drops. answer->holder points into the reply. The caller sets the times: read_ns, and those
 * of the clock if server_us is not 0.
 */
void redlock_wire_answer(unsigned kind, const struct redlock_reply *reply, const char *password,
                         struct redlock_answer *answer);

#endif
