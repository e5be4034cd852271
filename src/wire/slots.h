/* Slots in requests and replies: numbers, and the keys of their locks. */
#ifndef REDLOCK_WIRE_SLOTS_H
#define REDLOCK_WIRE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "wire/target.h"

/* Writes the key of the i-th of the slots, as a bulk string. */
char *redlock_slots_format_key(char *at, const struct redlock_target *target, unsigned i);
/* Writes those that were taken, as one bulk string: numbers with spaces between them. */
char *redlock_slots_format(char *at, const struct redlock_slots *slots);
/* Reads what a take returned. Returns false unless it is as many as were asked for, and they are
 * among those that it looked at. */
bool redlock_slots_read(const struct redlock_slots *slots, const char *bytes, size_t size, uint16_t *numbers);
/* Why a node gave none: too few are free; or somebody has the gate under this token, or waits there
 * (NULL). */
struct redlock_text *redlock_slots_refused(bool taken, const char *holder, size_t size);

#endif
