/* What goes over the wire for each operation, and what each reply to it means as a vote. Pure: bytes in, bytes out. */
#ifndef REDLOCK_WIRE_WIRE_H
#define REDLOCK_WIRE_WIRE_H

#include <stddef.h>

#include "wire/message.h"
#include "wire/reply.h"

/* Room for any message: the longest script, token, key, and key of a counter. */
#define REDLOCK_WIRE_SIZE_MAX 4096

/* Formats the message as RESP into buffer (at least REDLOCK_WIRE_SIZE_MAX bytes); returns its length. */
size_t redlock_wire_format(const struct redlock_message *message, char *buffer);

/*
 * What kind of reply a message will get: its operation, and what its form of the script also tells. No more than this is
 * kept of a message that was sent.
 */
#define REDLOCK_WIRE_FENCED 0x10u
#define REDLOCK_WIRE_TIMED  0x20u
static inline unsigned redlock_wire_expected(const struct redlock_message *message) {
    unsigned expected = message->operation;
    if (message->operation == REDLOCK_OP_ACQUIRE && message->fence != 0) {
        expected |= REDLOCK_WIRE_FENCED;
    }
    if ((message->operation == REDLOCK_OP_ACQUIRE || message->operation == REDLOCK_OP_EXTEND) && message->timed) {
        expected |= REDLOCK_WIRE_TIMED;
    }
    return expected;
}

static inline enum redlock_operation redlock_wire_operation(unsigned expected) {
    return (enum redlock_operation)(expected & 0x0fu);
}

/*
 * The vote that a reply makes, for redlock_wire_expected(), from a node of this password (NULL for
 * none); any reply that such a message cannot have is FAILED or UNKNOWN (R20), never counted.
 * answer->text is a new reference that the caller drops; answer->holder points into the reply. The
 * caller fills in the times: read_ns, and those of the clock where server_us is not 0.
 */
void redlock_wire_answer(unsigned expected, const struct redlock_reply *reply, const char *password,
                         struct redlock_answer *answer);

/* The two words of a TIME, as microseconds; above 0, and at most until the year 2255. */
bool redlock_wire_time(const struct redlock_reply_value pair[2], int64_t *server_us);

/*
 * The one place where a server's words become ours. What its error says, fit for people: printable,
 * bounded, without the arguments that servers echo (they may be a token or a password), and nothing
 * of it where it quotes the password, of whatever length (NULL or "": none). Returns its length.
 */
#define REDLOCK_WIRE_ERROR_SIZE 200
size_t redlock_wire_error(const struct redlock_reply_value *error, const char *password,
                          char buffer[REDLOCK_WIRE_ERROR_SIZE]);

#endif
