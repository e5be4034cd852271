/* Makes text from outside safe to print: escapes characters that cannot be seen. */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Whether the character must be escaped: it controls a terminal, begins a line, changes the
 * direction of the text around it, or is invisible, so that two names look the same. These are the
 * control characters, the separators of lines and paragraphs, Unicode's
 * Default_Ignorable_Code_Point, and the annotations U+FFF9 to U+FFFB. So an emoji made of several
 * characters shows its joiners. Letters that look alike are not escaped.
 */
bool tool_is_unsafe(uint32_t code);

/* Prints for a terminal: each byte that is unsafe or not UTF-8 appears as \xNN. */
void tool_print_safe(FILE *out, const char *text);

/* The number of columns that tool_print_safe() fills, if every character fills one. */
size_t tool_safe_width(const char *text);

#endif
