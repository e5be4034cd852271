/* The forms of tokens, and the holder's text in them: "web-3:4711" in "<digits>@web-3:4711". */
#ifndef REDLOCK_BASE_HOLDER_H
#define REDLOCK_BASE_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/*
 * form of a token                  who has it
 * 32 digits, the first g to v      a try, which takes the lock at once or not at all
 * the same, the first G to V       the same token in a node's key, with the mark of those who wait
 * 16 digits of a ticket, then 32   a place in a queue (docs/waiting.md)
 * 32 digits                        an acquire of a version from before the mark
 *
 * The other digits are hexadecimal. 32 digits are 128 random bits (R10). An `s` follows them where
 * the token reads, beside others who do, and a `p` where it has the gate of slots. A text may
 * follow.
 */
#define REDLOCK_TOKEN_DIGITS  32
#define REDLOCK_TICKET_DIGITS 16
#define REDLOCK_TRY_ZERO      'g'  /* of the 16 digits with which the token of a try begins */
#define REDLOCK_TRY_MARK      0x20 /* not in the first byte of a marked token */
#define REDLOCK_HOLDER_READS  's'
#define REDLOCK_HOLDER_GATE   'p' /* no digit */
#define REDLOCK_HOLDER_AT     '@' /* comes before the text; no digit */

/* Whether the token is that of a place in a queue. */
bool redlock_holder_has_ticket(const char *token, size_t size);
/* Whether it is that of a try, with the mark or without. */
bool redlock_holder_is_try(const char *token, size_t size);

/* Whether it reads, beside others who do. */
bool redlock_holder_reads(const char *token, size_t size);
/* Whether it wants permits, and waits for them at the gate. */
bool redlock_holder_is_gate(const char *token, size_t size);

/* Why a waiter was not granted a lock that is held under this token. */
struct redlock_text *redlock_holder_queued(const char *token, size_t size);
/* Why an acquire that does not wait was denied a lock, if nothing is known of its token. */
extern const struct redlock_text redlock_holder_other;
/* Why it was denied a lock that is held under this token. */
struct redlock_text *redlock_holder_held_long(const char *token, size_t size);
static inline struct redlock_text *redlock_holder_held(const char *token, size_t size) {
    /* Most tokens are too short for a text. */
    return size <= REDLOCK_TOKEN_DIGITS + 1 ? redlock_text_constant(&redlock_holder_other)
                                            : redlock_holder_held_long(token, size);
}
/* The holder's text in such a text; "" if it has none, or is another text. */
const char *redlock_holder_of_text(const struct redlock_text *text);

/* Whether a text for a token, or a name for CLIENT SETNAME, may have this byte: printable ASCII, no
 * space. So neither needs an escape in scripts, in pushes, in a log or on a terminal. */
static inline bool redlock_holder_allows(char byte) {
    return byte > ' ' && byte <= '~';
}

#endif
