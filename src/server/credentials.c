/* A user and a password. */
#include "server/credentials.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool redlock_credentials_copy(struct redlock_credentials *copy, const char *user, const char *password) {
    assert(password != NULL);
    *copy = (struct redlock_credentials){.user = user != NULL ? strdup(user) : NULL, .password = strdup(password)};
    if (copy->password != NULL && (copy->user != NULL || user == NULL)) {
        return true;
    }
    redlock_credentials_clear(copy);
    return false;
}

void redlock_credentials_clear(struct redlock_credentials *credentials) {
    if (credentials->password != NULL) {
        explicit_bzero(credentials->password, strlen(credentials->password));
    }
    free(credentials->user);
    free(credentials->password);
    *credentials = (struct redlock_credentials){0};
}

void redlock_credentials_move(struct redlock_credentials *to, struct redlock_credentials *from) {
    assert(to != from);
    redlock_credentials_clear(to);
    *to = *from;
    *from = (struct redlock_credentials){0};
}
