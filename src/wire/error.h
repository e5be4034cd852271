/* The only place that turns a server's words into ours. */
#ifndef REDLOCK_WIRE_ERROR_H
#define REDLOCK_WIRE_ERROR_H

#include <stddef.h>

#include "base/text.h"
#include "wire/reply.h"

/* Returns whether the error begins with exactly these words. */
bool redlock_wire_begins_with(const struct redlock_reply_value *error, const char *words);

/* Reads the code at the start of an error, and no later words. NONE if the reply is not an
 * error. */
enum redlock_cause redlock_wire_cause(const struct redlock_reply_value *reply);

/*
 * Writes a server's error as text for people: printable and bounded. Leaves out the arguments that
 * servers quote, since a token or a password may be among them. If the error quotes the password,
 * writes nothing of it. A password of NULL or "" means none. Returns the length.
 */
#define REDLOCK_WIRE_ERROR_SIZE 200
size_t redlock_wire_error(const struct redlock_reply_value *error, const char *password,
                          char buffer[REDLOCK_WIRE_ERROR_SIZE]);

#endif
