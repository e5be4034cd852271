/* What is locked. */
#ifndef REDLOCK_WIRE_TARGET_H
#define REDLOCK_WIRE_TARGET_H

#include <stdint.h>

/* The bytes belong to whoever embeds the target, and live as long. */
struct redlock_target {
    const char *key; /* with the key prefix; terminated */
    uint16_t key_size;
};

#endif
