/* The cause of a server's error. */
#ifndef REDLOCK_WIRE_CAUSE_H
#define REDLOCK_WIRE_CAUSE_H

#include "base/text.h"
#include "wire/reply.h"

/* Returns whether the error begins with exactly these words. */
bool redlock_wire_begins_with(const struct redlock_reply_value *error, const char *words);

/* Reads the code at the start of an error, and no later words. NONE if the reply is not an
 * error. */
enum redlock_cause redlock_wire_cause(const struct redlock_reply_value *reply);

#endif
