/* The holder's text in a token: "web-3:4711" in "<32 or 48 digits>@web-3:4711". */
#ifndef REDLOCK_BASE_HOLDER_H
#define REDLOCK_BASE_HOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define REDLOCK_TOKEN_DIGITS  32  /* our own tokens: 128 random bits in hexadecimal (R10) */
#define REDLOCK_TICKET_DIGITS 16  /* come before them in the tokens of an acquire that may queue */
#define REDLOCK_HOLDER_MARK   '@' /* comes between the digits and the text; no digit */

/* Whether the token begins with so many digits, and they are all of it or the mark follows. */
bool redlock_holder_follows(const char *token, size_t size, size_t digits);

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
