/* What lies behind a server's error. */
#ifndef REDLOCK_WIRE_CAUSE_H
#define REDLOCK_WIRE_CAUSE_H

#include "base/text.h"
#include "wire/reply.h"

/* By the code that an error begins with, not by words in it; NONE for a reply that is no error. */
enum redlock_cause redlock_wire_cause(const struct redlock_reply_value *reply);

#endif
