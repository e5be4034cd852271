/* The bytes of each kind of request. */
#ifndef REDLOCK_WIRE_FORMAT_H
#define REDLOCK_WIRE_FORMAT_H

#include "wire/message.h"

/* Writes at `at`, where there is room for REDLOCK_WIRE_SIZE_MAX, and returns the end. */
char *redlock_format(char *at, const struct redlock_message *message, unsigned kind);

#endif
