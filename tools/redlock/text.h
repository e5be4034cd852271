/* Text that came from elsewhere, made safe to print: UTF-8 is checked, control characters are escaped. */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* The bytes of the well-formed UTF-8 character at text (terminated), or 0 if what stands there is none. */
size_t tool_utf8_length(const char *text);

/* For a terminal: control characters and what is no UTF-8 appear as \xNN. */
void tool_print_safe(FILE *out, const char *text);

/* The columns that tool_print_safe() fills, if every character fills one. */
size_t tool_safe_width(const char *text);

#endif
