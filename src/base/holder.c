/* The forms of tokens, and the holder's text in them: "web-3:4711" in "<digits>@web-3:4711". */
#include "base/holder.h"

#include <string.h>

#include <redlock/redlock.h>

#define QUEUED "queued behind "
#define HELD   "held by "

static bool is_digit(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

/* How many bytes come before the text, or are all of it, if these are digits from the `first` on; 0
 * if not. */
static size_t head_size(const char *token, size_t size, size_t first, size_t digits) {
    if (size < digits) {
        return 0;
    }
    for (size_t i = first; i < digits; i++) {
        if (!is_digit(token[i])) {
            return 0;
        }
    }
    const bool says_more =
        size > digits && (token[digits] == REDLOCK_HOLDER_READS || token[digits] == REDLOCK_HOLDER_GATE);
    const size_t head = digits + says_more;
    return size == head || token[head] == REDLOCK_HOLDER_AT ? head : 0;
}

static size_t ticket_head(const char *token, size_t size) {
    return head_size(token, size, 0, REDLOCK_TICKET_DIGITS + REDLOCK_TOKEN_DIGITS);
}

static size_t try_head(const char *token, size_t size) {
    const unsigned zero = REDLOCK_TRY_ZERO;
    const bool begins = size > 0 && ((unsigned char)token[0] | REDLOCK_TRY_MARK) - zero < 16;
    return begins ? head_size(token, size, 1, REDLOCK_TOKEN_DIGITS) : 0;
}

bool redlock_holder_has_ticket(const char *token, size_t size) {
    return ticket_head(token, size) != 0;
}

bool redlock_holder_is_try(const char *token, size_t size) {
    return try_head(token, size) != 0;
}

static bool ends_with(const char *token, size_t size, char sign) {
    const size_t head = ticket_head(token, size) + try_head(token, size);
    return head != 0 && token[head - 1] == sign;
}

bool redlock_holder_reads(const char *token, size_t size) {
    return ends_with(token, size, REDLOCK_HOLDER_READS);
}

bool redlock_holder_is_gate(const char *token, size_t size) {
    return ends_with(token, size, REDLOCK_HOLDER_GATE);
}

/* Returns the text and sets its size: 0 if the token has none. A token may be another program's, so
 * only what we may have written ourselves counts as a text. */
static const char *find(const char *token, size_t size, size_t *text_size) {
    size_t head = ticket_head(token, size);
    head = head != 0 ? head : try_head(token, size);
    head = head != 0 ? head : head_size(token, size, 0, REDLOCK_TOKEN_DIGITS);
    *text_size = 0;
    if (head == 0 || size < head + 2 || size > head + 1 + REDLOCK_HOLDER_SIZE_MAX) {
        return "";
    }
    for (size_t i = head + 1; i < size; i++) {
        if (!redlock_holder_allows(token[i])) {
            return "";
        }
    }
    *text_size = size - head - 1;
    return token + head + 1;
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
