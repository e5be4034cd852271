/* What is locked. */
#ifndef REDLOCK_WIRE_TARGET_H
#define REDLOCK_WIRE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes belong to the owner of the target, and live as long. */
struct redlock_target {
    const char *key; /* includes the key prefix; terminated */
    uint16_t key_size;
    bool announced; /* WAIT, RELEASE: nodes tell observers who holds it now (docs/waiting.md) */
};

#endif
