/* What a user may run on a server, and what the server has, as its errors say. Pure. */
#ifndef REDLOCK_WIRE_RIGHTS_H
#define REDLOCK_WIRE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/reply.h"

enum redlock_right {
    REDLOCK_RIGHT_OPEN,   /* it proves nothing: a passing fault, a refused key, words of others */
    REDLOCK_RIGHT_DENIED, /* the user may not run the command */
    REDLOCK_RIGHT_ABSENT  /* the server has no such command */
};

/* What an error says about the command. An error about a key comes after the command's own check,
 * so it is OPEN. */
enum redlock_right redlock_rights_of(const char *error, size_t size);

#define REDLOCK_RIGHTS_SIZE 128

/* Commands in capitals, as "PTTL, DEL", or as rules, "+pttl +del"; "" for none. */
struct redlock_rights {
    char denied[REDLOCK_RIGHTS_SIZE]; /* without them no lease is renewed or released */
    char rules[REDLOCK_RIGHTS_SIZE];  /* the same ones */
    char absent[REDLOCK_RIGHTS_SIZE];
    char wanted[REDLOCK_RIGHTS_SIZE]; /* rules, or missing commands: to wait in order, */
    char shared[REDLOCK_RIGHTS_SIZE]; /* and to read with others */
    bool read_only;                   /* it is a replica */
};

/* Reads the lines that probe.lua returns. What is no such line is left out. */
void redlock_rights_read(struct redlock_rights *rights, const char *lines, size_t size);

#endif
