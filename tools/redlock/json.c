/* A writer of JSON: commas, escapes and UTF-8 are its business. */
#include "json.h"

#include <inttypes.h>

#include "text.h"

static void quoted(FILE *out, const char *text) {
    fputc('"', out);
    while (*text != '\0') {
        size_t length = tool_utf8_length(text);
        unsigned char byte = (unsigned char)*text;
        if (length == 0) {
            fputs("\\ufffd", out);
            text++;
            continue;
        }
        if (byte == '"' || byte == '\\') {
            fprintf(out, "\\%c", byte);
        } else if (byte < 0x20 || byte == 0x7F) {
            fprintf(out, "\\u%04x", byte);
        } else {
            fwrite(text, 1, length, out);
        }
        text += length;
    }
    fputc('"', out);
}

static void begin(struct tool_json *json, const char *name) {
    if (json->comma) {
        fputc(',', json->out);
    }
    json->comma = true;
    if (name != NULL) {
        quoted(json->out, name);
        fputc(':', json->out);
    }
}

void tool_json_open(struct tool_json *json, const char *name, char bracket) {
    begin(json, name);
    fputc(bracket, json->out);
    json->comma = false;
}

void tool_json_close(struct tool_json *json, char bracket) {
    fputc(bracket, json->out);
    json->comma = true;
}

void tool_json_string(struct tool_json *json, const char *name, const char *value) {
    begin(json, name);
    quoted(json->out, value);
}

void tool_json_number(struct tool_json *json, const char *name, int64_t value) {
    begin(json, name);
    fprintf(json->out, "%" PRId64, value);
}

void tool_json_null(struct tool_json *json, const char *name) {
    begin(json, name);
    fputs("null", json->out);
}
