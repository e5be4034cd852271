/* What the reply to each kind of request means. The caller starts the answer as UNKNOWN with no
 * values. */
#ifndef REDLOCK_WIRE_READ_H
#define REDLOCK_WIRE_READ_H

#include "wire/message.h"
#include "wire/reply.h"

void redlock_read_set(const struct redlock_reply *reply, struct redlock_answer *answer);
void redlock_read_acquire(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer);
void redlock_read_release(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer);
void redlock_read_extend(const struct redlock_reply *reply, unsigned kind, struct redlock_answer *answer);
void redlock_read_inspect(const struct redlock_reply *reply, struct redlock_answer *answer);
void redlock_read_fence(const struct redlock_reply *reply, struct redlock_answer *answer);
void redlock_read_wait(const struct redlock_reply *reply, struct redlock_answer *answer);
void redlock_read_list(const struct redlock_reply *reply, struct redlock_answer *answer);
void redlock_read_time(const struct redlock_reply *reply, struct redlock_answer *answer);

/* A reply that this request cannot have. Nobody knows what the node did (R20). */
void redlock_read_unexpected(const struct redlock_reply *reply, struct redlock_answer *answer);

/* An error, for any request. */
void redlock_read_error(const struct redlock_reply_value *error, const char *password, struct redlock_answer *answer);

/* Reads the two words of a TIME as microseconds: above 0, and at most until the year 2255. */
bool redlock_read_server_time(const struct redlock_reply_value pair[2], int64_t *server_us);

#endif
