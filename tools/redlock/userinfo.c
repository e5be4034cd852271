/* The user and the password in a node's URI. */
#include "userinfo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct tool_uri tool_uri_split(const char *uri, const char *scheme) {
    const char *end = strstr(uri, "://");
    struct tool_uri parts = {.scheme = scheme, .scheme_size = strlen(scheme), .rest = uri};
    if (end == NULL) {
        return parts; /* only a URI with a scheme may have a user */
    }
    parts.scheme = uri;
    parts.rest = end + 3;
    parts.scheme_size = (size_t)(parts.rest - uri);
    const char *at = strrchr(parts.rest, '@');
    if (at != NULL && strncmp(uri, "unix:", 5) != 0) {
        parts.user_info = parts.rest;
        parts.user_info_size = (size_t)(at - parts.rest);
        parts.rest = at + 1;
    }
    return parts;
}

bool tool_uris_meet(const struct tool_uri *one, const struct tool_uri *other) {
    return one->scheme_size == other->scheme_size && memcmp(one->scheme, other->scheme, one->scheme_size) == 0 &&
           strcmp(one->rest, other->rest) == 0;
}

/* Returns NULL with *decoded, or `malformed`, or that there is no memory. */
static const char *decode(const char *text, size_t size, const char *malformed, char **decoded) {
    size_t length = 0;
    char *out = calloc(1, size + 1);
    if (out == NULL) {
        return "there is no memory for it";
    }
    *decoded = out;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '%') {
            out[length++] = text[i];
            continue;
        }
        if (size - i < 3 || !isxdigit((unsigned char)text[i + 1]) || !isxdigit((unsigned char)text[i + 2]) ||
            memcmp(text + i, "%00", 3) == 0) {
            return malformed;
        }
        out[length++] = (char)strtol((const char[]){text[i + 1], text[i + 2], '\0'}, NULL, 16);
        i += 2;
    }
    return NULL;
}

const char *tool_login_read(struct tool_login *login, const char *user_info, size_t size) {
    const char *colon = size > 0 ? memchr(user_info, ':', size) : NULL;
    *login = (struct tool_login){0};
    if (colon == NULL || colon + 1 == user_info + size) {
        return NULL;
    }
    const size_t user_size = (size_t)(colon - user_info);
    const char *wrong =
        decode(colon + 1, size - user_size - 1,
               "a '%' in its password needs two hexadecimal digits, not 00 (write %25 for a '%')", &login->password);
    if (wrong != NULL || user_size == 0) {
        return wrong;
    }
    return decode(user_info, user_size, "a '%' in its user needs two hexadecimal digits, not 00 (write %25 for a '%')",
                  &login->user);
}

char *tool_userinfo_copy(const struct tool_uri *uri) {
    return strndup(uri->user_info != NULL ? uri->user_info : "", uri->user_info_size);
}

void tool_userinfo_clear(char **text) {
    if (*text != NULL) {
        explicit_bzero(*text, strlen(*text));
    }
    free(*text);
    *text = NULL;
}

void tool_login_clear(struct tool_login *login) {
    tool_userinfo_clear(&login->user);
    tool_userinfo_clear(&login->password);
}
