/* What the tests of shared locks on a real server begin with. */
#ifndef TEST_INTEGRATION_SHARED_SCRIPTS_H
#define TEST_INTEGRATION_SHARED_SCRIPTS_H

#include "queue_scripts.h"

/* Tokens that read. In their order they come behind FIRST, SECOND and THIRD, which write. */
#define READER_A "00000000000000ab0123456789abcdef0123456789abcdefs"
#define READER_B "00000000000000bc0123456789abcdef0123456789abcdefs@web-3:4711"
#define READER_C "00000000000000cd0123456789abcdef0123456789abcdefs"
#define READER_D "00000000000000ce0123456789abcdef0123456789abcdefs"
#define TRY_A    "k123456789abcdef0123456789abcdefs"
#define TRY_B    "g123456789abcdef0123456789abcdefs@web-3:4711"

/* SHARE, for `ttl_ms`: 0 for TTL_MS. */
redlock_vote_kind try_for(const char *token, int64_t ttl_ms);
redlock_vote_kind keep_for(const char *token, int64_t ttl_ms);
redlock_vote_kind keep_letting_nobody_in(const char *token);
redlock_vote_kind heal_as(const char *token);
#define assert_reads(token) assert_is(try_for(token, 0), REDLOCK_VOTE_GRANTED)

/* These and no others have an entry; the list ends with NULL. */
void assert_readers(const char *first, ...);
/* The entry ends so soon, and no sooner. */
void assert_entry_ms(const char *token, int64_t least, int64_t most);
/* Queued as number `rank`: `holder` reads, with others or alone; NULL: nobody keeps us out. */
void assert_waits_beside(struct wait wait, uint32_t rank, const char *holder);
/* Queued: this one is the first in line, and would have the lock alone. */
void assert_kept_out_by(struct wait wait, uint32_t rank, const char *first);
/* Granted, without being in line any more. */
void assert_joins(struct wait wait);
/* Lets the entries of so short a ttl end. */
void wait_ms(int64_t ms);

#endif
