/* A small world with a correct quorum lock. It makes random histories: nodes with keys, clients
 * that are paused and killed, an auditor. */
#ifndef CHAOS_CHECK_WORLD_H
#define CHAOS_CHECK_WORLD_H

#include "kit.h"

enum { WORLD_CLIENTS = 8, WORLD_RESOURCES = 3 };

/* Makes a sorted history of this length. The same seed gives the same history. The caller calls
 * kit_clear(). */
void world_make(struct kit *kit, uint64_t seed, size_t nodes, int64_t length_us);
/* The same with clients that read together, every other time. */
void world_make_shared(struct kit *kit, uint64_t seed, size_t nodes, int64_t length_us);
/* splitmix64, from 0 to max. */
int64_t world_random(uint64_t *state, int64_t max);

#endif
