/* A node's URI, parsed. Pure. */
#ifndef REDLOCK_SERVER_ADDRESS_H
#define REDLOCK_SERVER_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "server/credentials.h"

enum redlock_address_kind { REDLOCK_ADDRESS_TCP, REDLOCK_ADDRESS_UNIX };

struct redlock_address {
    enum redlock_address_kind kind;
    char *name;    /* host:port or path, without user and password: for people */
    char *host;    /* TCP: name or literal, brackets removed; UNIX: the path */
    uint16_t port; /* TCP */
    bool tls;      /* rediss:// */
    uint32_t db;   /* 0 to 65535 */
    /* Percent-decoded. */
    struct redlock_credentials credentials;
};

/* Returns REDLOCK_OK, REDLOCK_ERR_INVALID with a sentence that never quotes a password, or
 * REDLOCK_ERR_NO_MEMORY. */
int redlock_address_parse(const char *uri, struct redlock_address *address, struct redlock_error_text *failure);

/* Whether two names of addresses surely mean the same. They may differ in how they write a host
 * name, an IP address or a path: [::1] and [0:0:0:0:0:0:0:1], /run/a and /run//a. What a host name
 * or a link leads to is not looked up. */
bool redlock_address_is_same(const char *name, const char *other);

/* Frees everything, and overwrites the password. Accepts a zeroed address. */
void redlock_address_clear(struct redlock_address *address);

#endif
