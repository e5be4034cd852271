/* Text that came from elsewhere, made safe to print: UTF-8 is checked, what cannot be seen is
 * escaped. */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The bytes of the well-formed UTF-8 character at text (terminated), with its number in *code, or 0
 * if what stands there is none. */
size_t tool_utf8_read(const char *text, uint32_t *code);

/*
 * Whether the character must be escaped: it steers a terminal, begins a line, turns the direction
 * of what stands around it, or has no shape, so that two names look like one. These are the control
 * characters, the separators of lines and paragraphs, and what Unicode calls
 * Default_Ignorable_Code_Point, with the annotations U+FFF9 to U+FFFB. Hence an emoji that is put
 * together of several shows its joints. Different letters that look alike stay as they are.
 */
bool tool_is_unsafe(uint32_t code);

/* For a terminal: each byte of what is unsafe or no UTF-8 appears as \xNN. */
void tool_print_safe(FILE *out, const char *text);

/* The columns that tool_print_safe() fills, if every character fills one. */
size_t tool_safe_width(const char *text);

#endif
