/* Error texts that several votes share: counted references, one thread. */
#ifndef REDLOCK_BASE_TEXT_H
#define REDLOCK_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pointer to one is NULL for "no text", and for a text that there was no memory for. */
struct redlock_text {
    const char *string;
    uint32_t references; /* 0: a constant, which is never counted or freed */
};

/* A constant text, for the answers that come by the thousand: `static const struct redlock_text missing = {"…", 0};`
 * handed out by this. */
struct redlock_text *redlock_text_constant(const struct redlock_text *text);

struct redlock_text *redlock_text_new(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline struct redlock_text *redlock_text_keep(struct redlock_text *text) {
    if (text != NULL && text->references != 0) {
        text->references++;
    }
    return text;
}

void redlock_text_drop_counted(struct redlock_text *text); /* for redlock_text_drop() */

static inline void redlock_text_drop(struct redlock_text *text) {
    if (text != NULL && text->references != 0) {
        redlock_text_drop_counted(text);
    }
}

/* "" for NULL. */
static inline const char *redlock_text_string(const struct redlock_text *text) {
    return text == NULL ? "" : text->string;
}

/* A resource may hold any bytes: what would break a line or a terminal is written as \xNN. Cut where it does not fit;
 * always terminated. size is 1 or more. */
void redlock_text_printable(const char *string, char *buffer, size_t size);

#endif
