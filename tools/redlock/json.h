/* A writer of JSON: sets commas, escapes characters, checks UTF-8. */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct tool_json {
    FILE *out;
    bool comma; /* the next value needs a comma before it */
};

/* An object on a line of its own; tool_json_end() ends it. */
struct tool_json tool_json_begin(FILE *out);
/* name is NULL inside an array and for the outermost value; bracket is '{' or '['. */
void tool_json_open(struct tool_json *json, const char *name, char bracket);
/* bracket is '}' or ']'. */
void tool_json_close(struct tool_json *json, char bracket);
void tool_json_end(struct tool_json *json);
/* Bytes that are not UTF-8 become U+FFFD. Characters that are unsafe for a terminal are escaped; a
 * parser reads them unchanged. */
void tool_json_string(struct tool_json *json, const char *name, const char *value);
void tool_json_number(struct tool_json *json, const char *name, int64_t value);
void tool_json_bool(struct tool_json *json, const char *name, bool value);
void tool_json_null(struct tool_json *json, const char *name);
/* null for a negative value: it is not known. */
void tool_json_known(struct tool_json *json, const char *name, int64_t value);

#endif
