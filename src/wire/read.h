/* What the reply to each kind of request means. The caller starts the answer as UNKNOWN with no
 * values. */
#ifndef REDLOCK_WIRE_READ_H
#define REDLOCK_WIRE_READ_H

#include "wire/message.h"
#include "wire/reply.h"

/* False for a reply that such a request cannot have: nobody knows what the node did (R20), and what
 * was written to the answer counts for nothing. An error is read elsewhere. */
bool redlock_read(unsigned kind, const struct redlock_reply *reply, struct redlock_answer *answer);

/* Reads the two words of a TIME as microseconds: above 0, and at most until the year 2255. */
bool redlock_read_server_time(const struct redlock_reply_value pair[2], int64_t *server_us);

#endif
