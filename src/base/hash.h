/* A hash for tables and for what repeats. Anybody finds two strings with the same hash. */
#ifndef REDLOCK_BASE_HASH_H
#define REDLOCK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a */
static inline uint64_t redlock_hash(const char *bytes, size_t size) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

#endif
