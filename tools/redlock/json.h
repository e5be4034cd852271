/* A writer of JSON: commas, escapes and UTF-8 are its business. */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tool_json {
    FILE *out;
    bool comma; /* a value stands before the next one */
};

/* name is NULL inside an array and for the outermost value; bracket is '{' or '['. */
void tool_json_open(struct tool_json *json, const char *name, char bracket);
/* bracket is '}' or ']'. */
void tool_json_close(struct tool_json *json, char bracket);
/* Bytes that are no UTF-8 become U+FFFD; what is unsafe for a terminal is escaped and reads the
 * same. */
void tool_json_string(struct tool_json *json, const char *name, const char *value);
void tool_json_number(struct tool_json *json, const char *name, int64_t value);
void tool_json_null(struct tool_json *json, const char *name);

#endif
