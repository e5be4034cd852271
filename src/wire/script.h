/* The Lua scripts that compare the token and act in one step (R11), with their SHA1. */
#ifndef REDLOCK_WIRE_SCRIPT_H
#define REDLOCK_WIRE_SCRIPT_H

#include <stddef.h>

enum redlock_script_id {
    REDLOCK_SCRIPT_RELEASE,
    REDLOCK_SCRIPT_EXTEND,
    REDLOCK_SCRIPT_INSPECT,
    REDLOCK_SCRIPT_ACQUIRE,
    REDLOCK_SCRIPT_FENCE,
    REDLOCK_SCRIPT_WAIT,
    REDLOCK_SCRIPT_COUNT
};

/* Scripts that no handshake loads for requests. LIST is sent by source. SHARE and SLOTS are loaded
 * in front of the first request that runs them. PROBE is of the handshake. */
enum redlock_rare_script_id {
    REDLOCK_RARE_SCRIPT_LIST,
    REDLOCK_RARE_SCRIPT_PROBE,
    REDLOCK_RARE_SCRIPT_SHARE,
    REDLOCK_RARE_SCRIPT_SLOTS,
    REDLOCK_RARE_SCRIPT_COUNT
};

#define REDLOCK_SHA1_SIZE 40

struct redlock_script {
    const char *source;
    size_t source_size;
    const char *sha1; /* 40 hexadecimal digits; a test compares it with a server's */
};

extern const struct redlock_script redlock_scripts[REDLOCK_SCRIPT_COUNT];
extern const struct redlock_script redlock_rare_scripts[REDLOCK_RARE_SCRIPT_COUNT];

const struct redlock_script *redlock_script_get(enum redlock_script_id id);

#endif
