/* What is locked. */
#ifndef REDLOCK_WIRE_TARGET_H
#define REDLOCK_WIRE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes of the key stand behind the struct of the target's owner, in the same memory, so that a
 * lease is one allocation (570 bytes with five nodes and short names). No owner shares its target,
 * and whoever must outlive the owner copies the bytes: there is nothing to count references for. */
struct redlock_target {
    const char *key; /* includes the key prefix; terminated */
    uint16_t key_size;
    bool announced; /* WAIT, RELEASE: nodes tell observers who holds it now (docs/waiting.md) */
};

#endif
