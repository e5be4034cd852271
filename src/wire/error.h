/* The one place where a server's words become ours. */
#ifndef REDLOCK_WIRE_ERROR_H
#define REDLOCK_WIRE_ERROR_H

#include <stddef.h>

#include "wire/reply.h"

/*
 * What a server's error says, fit for people: printable, bounded, without the arguments that
 * servers echo (a token or a password may be among them). If it quotes the password, of whatever
 * length, nothing of it is told; NULL or "" is no password. Returns the length.
 */
#define REDLOCK_WIRE_ERROR_SIZE 200
size_t redlock_wire_error(const struct redlock_reply_value *error, const char *password,
                          char buffer[REDLOCK_WIRE_ERROR_SIZE]);

#endif
