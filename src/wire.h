/* What goes over the wire for each operation, and what each reply to it means as a vote. Pure: bytes in, bytes out. */
#ifndef REDLOCK_WIRE_H
#define REDLOCK_WIRE_H

#include <stddef.h>

#include "env.h"
#include "reply.h"

/* Room for any message: the longest script, key and token. */
#define REDLOCK_WIRE_SIZE_MAX 4096

/* Formats the message as RESP into buffer (at least REDLOCK_WIRE_SIZE_MAX bytes); returns its length. */
size_t redlock_wire_format(const struct redlock_message *message, char *buffer);

/*
 * The vote that a reply makes, for ACQUIRE, EXTEND, RELEASE and INSPECT; any reply that the operation cannot have is
 * FAILED or UNKNOWN (R20), never counted. answer->text is a new reference that the caller drops; answer->holder points
 * into the reply.
 */
void redlock_wire_answer(enum redlock_operation operation, const struct redlock_reply *reply,
                         struct redlock_answer *answer);

/* What a server's error says, fit for people: printable, bounded, without the arguments that servers echo (they may be
 * a token or a password). Returns its length. */
#define REDLOCK_WIRE_ERROR_SIZE 200
size_t redlock_wire_error(const struct redlock_reply_value *error, char buffer[REDLOCK_WIRE_ERROR_SIZE]);

#endif
