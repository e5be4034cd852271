/* Begins and ends faults, and writes them down. */
#ifndef CHAOS_NEMESIS_H
#define CHAOS_NEMESIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "client/crew.h"
#include "faults/fault.h"
#include "history/log.h"
#include "links/links.h"

struct chaos_nemesis;

/* NULL without memory. All that is given must live as long. */
struct chaos_nemesis *chaos_nemesis_new(struct chaos_backend *backend, struct chaos_links *links,
                                        struct chaos_crew *crew, struct chaos_log *log);
void chaos_nemesis_free(struct chaos_nemesis *nemesis);

/*
 * Begins a fault now; where it lasts, it is ended by chaos_nemesis_turn() once fault->for_ms is
 * over. False with a sentence if nothing of it could be done: an exclusive fault is on the same
 * node, the backend cannot, the node does not answer. What could be done on some of its nodes
 * stands.
 */
bool chaos_nemesis_begin(struct chaos_nemesis *nemesis, const struct chaos_fault *fault, struct chaos_error *error);
/* Ends what is due. */
void chaos_nemesis_turn(struct chaos_nemesis *nemesis, int64_t now_us);
/* When the next fault is due to end; INT64_MAX for none. */
int64_t chaos_nemesis_next_us(const struct chaos_nemesis *nemesis);
/* Whether a client is dead on purpose. */
bool chaos_nemesis_keeps_dead(const struct chaos_nemesis *nemesis, size_t client);
/* All faults are due to end now; chaos_nemesis_next_us() says when they have. */
void chaos_nemesis_heal(struct chaos_nemesis *nemesis);

#endif
