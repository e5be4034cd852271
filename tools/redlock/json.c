/* A writer of JSON: sets commas, escapes characters, checks UTF-8. */
#include "json.h"

#include <inttypes.h>

#include "text.h"
#include "values/values.h"

/* In UTF-16, as JSON requires. */
static void escaped(FILE *out, uint32_t code) {
    if (code > 0xFFFF) {
        code -= 0x10000;
        fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
    } else {
        fprintf(out, "\\u%04" PRIx32, code);
    }
}

static void quoted(FILE *out, const char *text) {
    fputc('"', out);
    while (*text != '\0') {
        uint32_t code;
        size_t length = tool_utf8_read(text, &code);
        if (length == 0) {
            fputs("\\ufffd", out);
            length = 1;
        } else if (code == '"' || code == '\\') {
            fprintf(out, "\\%c", *text);
        } else if (tool_is_unsafe(code)) {
            escaped(out, code);
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

struct tool_json tool_json_begin(FILE *out) {
    struct tool_json json = {.out = out};
    tool_json_open(&json, NULL, '{');
    return json;
}

void tool_json_close(struct tool_json *json, char bracket) {
    fputc(bracket, json->out);
    json->comma = true;
}

void tool_json_end(struct tool_json *json) {
    fputs("}\n", json->out);
}

void tool_json_string(struct tool_json *json, const char *name, const char *value) {
    begin(json, name);
    quoted(json->out, value);
}

void tool_json_number(struct tool_json *json, const char *name, int64_t value) {
    begin(json, name);
    fprintf(json->out, "%" PRId64, value);
}

void tool_json_bool(struct tool_json *json, const char *name, bool value) {
    begin(json, name);
    fputs(value ? "true" : "false", json->out);
}

void tool_json_null(struct tool_json *json, const char *name) {
    begin(json, name);
    fputs("null", json->out);
}

void tool_json_known(struct tool_json *json, const char *name, int64_t value) {
    if (value >= 0) {
        tool_json_number(json, name, value);
    } else {
        tool_json_null(json, name);
    }
}
