/* Numbers, times (500ms, 10s, 2m, 1h, 1d) and text as people write them to all tools. */
#ifndef TOOL_VALUES_H
#define TOOL_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads digits, and no sign, up to `most`; *end is what follows them. Where it is NULL, nothing may
 * follow. False, and nothing is set, for anything else. */
bool tool_number_read(const char *text, int64_t most, int64_t *number, const char **end);

/* For qsort() of int64_t, or of structs that begin with one. */
int tool_number_order(const void *left, const void *right);

enum tool_duration_error {
    TOOL_DURATION_OK = 0,
    TOOL_DURATION_NO_UNIT, /* digits alone; 0 needs no unit */
    TOOL_DURATION_MALFORMED,
    TOOL_DURATION_TOO_LONG
};

/* Sets *ms on TOOL_DURATION_OK only. */
enum tool_duration_error tool_duration_parse(const char *text, int64_t *ms);

/* "850ms", "8.2s", "2m 5s", "3h 4m", "12d 3h": two units at most, rounded down. Returns buffer. */
const char *tool_duration_format(int64_t ms, char *buffer, size_t size);

/* As an option would be given: "30s", "1500ms", "2m"; exact. Returns buffer. */
const char *tool_duration_exact(int64_t ms, char *buffer, size_t size);

/* Both with a buffer that lives as long as the block. */
#define TOOL_DURATION(ms)       tool_duration_format(ms, (char[32]){0}, 32)
#define TOOL_DURATION_EXACT(ms) tool_duration_exact(ms, (char[32]){0}, 32)

/* A text, cut off where it does not fit. Returns buffer; the macro brings one that lives as long as
 * the block. */
__attribute__((format(printf, 3, 4))) char *tool_text(char *buffer, size_t size, const char *format, ...);
#define TOOL_TEXT(size, ...) tool_text((char[size]){0}, size, __VA_ARGS__)
/* Appends to the text in the buffer, as much as fits. Returns the length that all of it has. */
__attribute__((format(printf, 3, 4))) size_t tool_append(char *buffer, size_t size, const char *format, ...);

/* Returns the length of the UTF-8 character at text (terminated) and sets *code; 0 if it is not
 * well-formed. */
size_t tool_utf8_read(const char *text, uint32_t *code);

/* Steele, Lea, Flood: splitmix64. */
static inline uint64_t tool_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
