/* Requests as nodes receive them. */
#include "request.h"

#include <stdlib.h>
#include <string.h>

size_t request_size(const char *at, const char *end, const char *words[REQUEST_WORDS]) {
    const char *begin = at, *line_end = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    words[0] = words[1] = words[2] = "";
    if (!line_end) {
        return 0;
    }
    long count = strtol(at + 1, NULL, 10);
    at = line_end + 1;
    for (long i = 0; i < count; i++) {
        line_end = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!line_end) {
            return 0;
        }
        long size = strtol(at + 1, NULL, 10);
        if (end - line_end - 1 < size + 2) {
            return 0;
        }
        if (i < REQUEST_WORDS) {
            words[i] = line_end + 1;
        }
        at = line_end + 1 + size + 2;
    }
    return (size_t)(at - begin);
}

bool request_is(const char *word, const char *name) {
    size_t size = strlen(name);
    return strncmp(word, name, size) == 0 && word[size] == '\r';
}
