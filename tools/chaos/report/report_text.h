/* Text and numbers of the page: what came from outside is escaped here, and nowhere else. */
#ifndef CHAOS_REPORT_TEXT_H
#define CHAOS_REPORT_TEXT_H

#include <stdint.h>
#include <stdio.h>

enum { CHAOS_NUMBER_SIZE = 48 };

/* As text or as an attribute's value in double quotes, of HTML and of SVG. NULL is "". Bytes that are no UTF-8, and characters that show nothing or turn the
 * line around, become U+FFFD. */
void chaos_page_text(FILE *out, const char *text);
/* As a JSON string with its quotes, which may stand in a <script>. */
void chaos_page_json(FILE *out, const char *text);

/* Numbers for people; each returns buffer, of CHAOS_NUMBER_SIZE. */

/* "12,345" */
char *chaos_say_count(int64_t number, char *buffer);
/* "812 µs", "1.23 ms", "45.6 s", "3 min 20 s": three digits that count. */
char *chaos_say_duration(int64_t us, char *buffer);
/* "12.345 s": a time since the start. */
char *chaos_say_time(int64_t us, char *buffer);
/* "99.87 %" of hundredths of a percent. */
char *chaos_say_share(int64_t share_10000, char *buffer);
/* "1 lease", "2 leases": the word takes an s but for 1. */
char *chaos_say_many(int64_t number, const char *word, char *buffer);

#endif
