/* HTML and JSON for the page. What comes from outside is escaped here, and nowhere else. */
#ifndef CHAOS_REPORT_HTML_H
#define CHAOS_REPORT_HTML_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "checks/numbers.h"
#include "values/values.h"

/*
 * Writes the format, which is HTML. %s is escaped, as text and as an attribute's value in double
 * quotes; NULL is "". Nothing else may follow a %. Bytes that are not UTF-8, control characters,
 * and characters that change the direction of the line become U+FFFD.
 */
void chaos_html(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define CHAOS_SAY(...) TOOL_TEXT(512, __VA_ARGS__)
/* A JSON string with the same replacements. NULL without memory. */
json_t *chaos_json_text(const char *text);
/* Writes JSON that may stand in a <script> element. False without memory; write errors are left to
 * ferror(). */
bool chaos_html_json(FILE *out, const json_t *json);

#endif
