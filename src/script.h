/* The Lua scripts that compare the token and act in one step (R11), with their SHA1. */
#ifndef REDLOCK_SCRIPT_H
#define REDLOCK_SCRIPT_H

#include <stddef.h>

enum redlock_script_id {
    REDLOCK_SCRIPT_RELEASE, /* KEYS[1] key, ARGV[1] token: 1 deleted, 0 missing, -1 another token */
    REDLOCK_SCRIPT_EXTEND, /* KEYS[1] key, ARGV[1] token, ARGV[2] ttl ms: 1 lives that long or longer, 0 missing, -1 other */
    REDLOCK_SCRIPT_INSPECT, /* KEYS[1] key: {value or false, PTTL} */
    REDLOCK_SCRIPT_COUNT,
#ifdef REDLOCK_PLANTED_BUGS
    REDLOCK_SCRIPT_PLANTED_RELEASE = REDLOCK_SCRIPT_COUNT, /* RELEASE_ANY_TOKEN: 1 deleted, 0 missing */
    REDLOCK_SCRIPT_PLANTED_EXTEND                          /* EXTEND_SHORTENS: 1 set anew, 0 not ours */
#endif
};

#define REDLOCK_SHA1_SIZE 40

struct redlock_script {
    const char *source;
    size_t source_size;
    const char *sha1; /* 40 hexadecimal digits; a test compares it with a server's own */
};

const struct redlock_script *redlock_script_get(enum redlock_script_id id);

#endif
