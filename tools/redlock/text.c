/* Makes text from outside safe to print: escapes characters that cannot be seen. */
#include "text.h"

#include "values/values.h"

bool tool_is_unsafe(uint32_t code) {
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x0000, 0x001F}, /* C0 controls */
        {0x007F, 0x009F}, /* DEL and C1 controls, which control some terminals */
        {0x00AD, 0x00AD}, /* soft hyphen */
        {0x034F, 0x034F}, /* combining grapheme joiner */
        {0x061C, 0x061C}, /* Arabic letter mark: direction */
        {0x115F, 0x1160}, /* Hangul fillers */
        {0x17B4, 0x17B5}, /* Khmer vowels without a shape */
        {0x180B, 0x180F}, /* Mongolian selectors and vowel separator */
        {0x200B, 0x200F}, /* zero width space and joiners, marks of direction */
        /* Line and paragraph separator, embeddings and overrides of direction. */
        {0x2028, 0x202E},
        {0x2060, 0x206F},   /* word joiner, invisible operators, isolates of direction */
        {0x3164, 0x3164},   /* Hangul filler */
        {0xFE00, 0xFE0F},   /* variation selectors */
        {0xFEFF, 0xFEFF},   /* byte order mark */
        {0xFFA0, 0xFFA0},   /* Hangul filler */
        {0xFFF0, 0xFFFB},   /* unassigned, interlinear annotation */
        {0x1BCA0, 0x1BCA3}, /* shorthand format controls */
        {0x1D173, 0x1D17A}, /* musical format controls */
        {0xE0000, 0xE0FFF}, /* tags, more variation selectors */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

/* How many bytes at text must be escaped; 0 if the character may be printed. Sets *length to its
 * length. */
static size_t unsafe_bytes(const char *text, size_t *length) {
    uint32_t code;
    *length = tool_utf8_read(text, &code);
    if (*length == 0) {
        return *length = 1;
    }
    return tool_is_unsafe(code) ? *length : 0;
}

void tool_print_safe(FILE *out, const char *text) {
    size_t length;
    for (; *text != '\0'; text += length) {
        size_t unsafe = unsafe_bytes(text, &length);
        for (size_t i = 0; i < unsafe; i++) {
            fprintf(out, "\\x%02x", (unsigned char)text[i]);
        }
        if (unsafe == 0) {
            fwrite(text, 1, length, out);
        }
    }
}

size_t tool_safe_width(const char *text) {
    size_t width = 0;
    size_t length;
    for (; *text != '\0'; text += length) {
        size_t unsafe = unsafe_bytes(text, &length);
        width += unsafe == 0 ? 1 : 4 * unsafe;
    }
    return width;
}
