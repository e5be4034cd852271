/* Error texts that several votes share: counted references, one thread. */
#ifndef REDLOCK_TEXT_H
#define REDLOCK_TEXT_H

struct redlock_text; /* NULL stands for "no text", and for a text that there was no memory for */

struct redlock_text *redlock_text_new(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct redlock_text *redlock_text_keep(struct redlock_text *text);
void redlock_text_drop(struct redlock_text *text);
const char *redlock_text_string(const struct redlock_text *text); /* "" for NULL */

#endif
