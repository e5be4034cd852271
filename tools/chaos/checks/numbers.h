/* Numbers for people. */
#ifndef CHAOS_NUMBERS_H
#define CHAOS_NUMBERS_H

#include <stdint.h>

enum { CHAOS_NUMBER_SIZE = 48 };

/* Each returns buffer, of CHAOS_NUMBER_SIZE. The macros bring a buffer that lives as long as the
 * block. */

/* "12,345" */
char *chaos_say_count(int64_t number, char *buffer);
/* "812 µs", "1.23 ms", "45.6 s", "3 min 20 s": three digits. */
char *chaos_say_duration(int64_t us, char *buffer);
/* "12.345 s": a time since the start. */
char *chaos_say_time(int64_t us, char *buffer);
/* "99.87 %" of hundredths of a percent. */
char *chaos_say_share(int64_t share_10000, char *buffer);
/* "1 lease", "2 leases": the word takes an s except for 1. */
char *chaos_say_many(int64_t number, const char *word, char *buffer);

#define CHAOS_BUFFER        ((char[CHAOS_NUMBER_SIZE]){0})
#define CHAOS_COUNT(n)      chaos_say_count((int64_t)(n), CHAOS_BUFFER)
#define CHAOS_DURATION(us)  chaos_say_duration(us, CHAOS_BUFFER)
#define CHAOS_TIME(us)      chaos_say_time(us, CHAOS_BUFFER)
#define CHAOS_SHARE(share)  chaos_say_share(share, CHAOS_BUFFER)
#define CHAOS_MANY(n, word) chaos_say_many((int64_t)(n), word, CHAOS_BUFFER)

#endif
