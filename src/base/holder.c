/* The holder's text in a token: "web-3:4711" in "<32 or 48 digits>@web-3:4711". */
#include "base/holder.h"

#include <string.h>

#include <redlock/redlock.h>

#define QUEUED "queued behind "
#define HELD   "held by "

static bool is_digit(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

bool redlock_holder_follows(const char *token, size_t size, size_t digits) {
    if (size < digits || (size > digits && token[digits] != REDLOCK_HOLDER_MARK)) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        if (!is_digit(token[i])) {
            return false;
        }
    }
    return true;
}

/* Returns the text and sets its size: 0 if the token has none. A token may be another program's, so
 * only what we may have written ourselves counts as a text. */
static const char *find(const char *token, size_t size, size_t *text_size) {
    const size_t with_ticket = REDLOCK_TICKET_DIGITS + REDLOCK_TOKEN_DIGITS;
    const size_t digits = redlock_holder_follows(token, size, with_ticket) ? with_ticket : REDLOCK_TOKEN_DIGITS;
    *text_size = 0;
    if (size < digits + 2 || size > digits + 1 + REDLOCK_HOLDER_SIZE_MAX ||
        !redlock_holder_follows(token, size, digits)) {
        return "";
    }
    for (size_t i = digits + 1; i < size; i++) {
        if (!redlock_holder_allows(token[i])) {
            return "";
        }
    }
    *text_size = size - digits - 1;
    return token + digits + 1;
}

const char *redlock_token_holder(const char *token) {
    size_t size;
    return token != NULL ? find(token, strnlen(token, REDLOCK_TOKEN_SIZE_MAX + 1), &size) : "";
}

const struct redlock_text redlock_holder_other = {.string = "held under another token"};

static struct redlock_text *name(const char *what, const char *token, size_t size,
                                 const struct redlock_text *without_name) {
    size_t text_size;
    const char *text = find(token, size, &text_size);
    return text_size == 0 ? redlock_text_constant(without_name)
                          : redlock_text_new(REDLOCK_CAUSE_HELD, "%s%.*s", what, (int)text_size, text);
}

struct redlock_text *redlock_holder_queued(const char *token, size_t size) {
    static const struct redlock_text queued = {.string = QUEUED "another token"};
    return name(QUEUED, token, size, &queued);
}

struct redlock_text *redlock_holder_held_long(const char *token, size_t size) {
    return name(HELD, token, size, &redlock_holder_other);
}

const char *redlock_holder_of_text(const struct redlock_text *text) {
    if (redlock_text_cause(text) != REDLOCK_CAUSE_HELD) {
        return "";
    }
    const size_t held = sizeof HELD - 1;
    return text->string + (strncmp(text->string, HELD, held) == 0 ? held : sizeof QUEUED - 1);
}
