/* SipHash-2-4: a hash that nobody can compute without the key. Pure. */
#ifndef REDLOCK_BASE_SIPHASH_H
#define REDLOCK_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t redlock_siphash(const uint64_t key[2], const void *bytes, size_t size);

#endif
