/* Numbers: as digits, and in order. Pure. */
#ifndef REDLOCK_CORE_NUMBER_H
#define REDLOCK_CORE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads 1 or more decimal digits and nothing else. False for other bytes, which leave *number as it
 * was, and for a number above `most`, which makes it `most`. */
bool redlock_number_read(const char *digits, size_t size, uint64_t most, uint64_t *number);

/* Writes exactly `count` digits, without a terminator. Returns their end. */
char *redlock_number_write(char *digits, uint64_t number, unsigned count);

/* Inserts into `count` numbers in rising order. The array has room for one more. */
void redlock_number_insert(int64_t *numbers, unsigned count, int64_t number);

#endif
