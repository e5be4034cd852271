/* The user and the password in a node's URI. */
#ifndef TOOL_USERINFO_H
#define TOOL_USERINFO_H

#include <stdbool.h>
#include <stddef.h>

/* A URI in parts: redis:// USER:PASSWORD HOST:PORT/DB. Without an '@' there is no user info. */
struct tool_uri {
    const char *scheme, *user_info, *rest; /* only rest is terminated */
    size_t scheme_size, user_info_size;
};

/* scheme: that of a URI without one. */
struct tool_uri tool_uri_split(const char *uri, const char *scheme);

/* Whether both lead to the same database of the same node, user and password aside. */
bool tool_uris_meet(const struct tool_uri *one, const struct tool_uri *other);

/* The user info, to be cleared; "" if there is none. NULL without memory. */
char *tool_userinfo_copy(const struct tool_uri *uri);

/* Overwrites the text, and frees it; NULL stays. */
void tool_userinfo_clear(char **text);

struct tool_login {
    char *user; /* NULL: the default user */
    char *password;
};

/* What is wrong with the user info, as a sentence; NULL if nothing is. Clear the login in both
 * cases. Without a password, both are NULL. */
const char *tool_login_read(struct tool_login *login, const char *user_info, size_t size);

/* Overwrites it, and frees it. */
void tool_login_clear(struct tool_login *login);

#endif
