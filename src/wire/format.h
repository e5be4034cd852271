/* The bytes of each kind of request. Each function writes at `at`, where there is room for
 * REDLOCK_WIRE_SIZE_MAX, and returns the end. */
#ifndef REDLOCK_WIRE_FORMAT_H
#define REDLOCK_WIRE_FORMAT_H

#include "wire/message.h"

/* SET key token NX PX ttl, as redsync, node-redlock and others do. Their locks exclude ours. */
char *redlock_format_set(char *at, const struct redlock_message *message);
char *redlock_format_time(char *at);

/* Scripts, by SHA or by source (R11); some of these kinds are a command. */
char *redlock_format_acquire(char *at, const struct redlock_message *message, unsigned kind);
char *redlock_format_extend(char *at, const struct redlock_message *message);
char *redlock_format_release(char *at, const struct redlock_message *message, unsigned kind);
char *redlock_format_inspect(char *at, const struct redlock_message *message);
char *redlock_format_fence(char *at, const struct redlock_message *message);
char *redlock_format_wait(char *at, const struct redlock_message *message);
/* By source only: people list locks now and then, so no connection loads this script. */
char *redlock_format_list(char *at, const struct redlock_message *message);

#endif
