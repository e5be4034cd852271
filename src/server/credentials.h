/* A user and a password. */
#ifndef REDLOCK_SERVER_CREDENTIALS_H
#define REDLOCK_SERVER_CREDENTIALS_H

#include <stdbool.h>

/* All zero: none. Never printed; overwritten before they are freed. */
struct redlock_credentials {
    char *user; /* NULL: the default user */
    char *password;
};

/* Returns false without memory. The user may be NULL. */
bool redlock_credentials_copy(struct redlock_credentials *copy, const char *user, const char *password);
void redlock_credentials_clear(struct redlock_credentials *credentials);
/* Empties `from`. What was in `to` is wiped. */
void redlock_credentials_move(struct redlock_credentials *to, struct redlock_credentials *from);

#endif
