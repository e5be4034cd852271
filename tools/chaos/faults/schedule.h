/* Faults over time: from a seed, or from text. Pure; ends the program without memory: lists.h. */
#ifndef CHAOS_SCHEDULE_H
#define CHAOS_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/fault.h"

struct chaos_schedule {
    struct chaos_fault *faults; /* by at_ms; owned */
    size_t count;
};

struct chaos_schedule_shape {
    size_t nodes;
    size_t clients;
    int64_t duration_ms; /* all faults have ended at 9/10 of it: the rest shows the recovery */
    uint32_t kinds;      /* bits */
    /* else `kill` would forget keys: it is left out unless breaking kinds are asked for */
    bool append_only;
};

/*
 * The same seed and shape give the same schedule, on every machine. Faults come one to three at a
 * time, with quiet spells between them; most hit a minority of the nodes, about a quarter a
 * majority; exclusive kinds never share a node or a client. Every kind that is asked for comes, if
 * the duration has room for it.
 */
void chaos_schedule_random(uint64_t seed, const struct chaos_schedule_shape *shape, struct chaos_schedule *schedule);
/* One fault a line; empty lines and those that begin with # are skipped; sorted by at. False with
 * "line 3: …" in error. */
bool chaos_schedule_parse(const char *text, size_t nodes, size_t clients, struct chaos_schedule *schedule,
                          struct chaos_error *error);
/* Text that chaos_schedule_parse() reads back; to be freed. */
char *chaos_schedule_format(const struct chaos_schedule *schedule, size_t nodes, size_t clients);
/* Whether it has a fault under which Redlock promises no safety, or lets clients run beside each
 * other whose quorums need not share a node. Those that it configures are all clients. */
bool chaos_schedule_breaks(const struct chaos_schedule *schedule, bool append_only);
/* Puts a fault in its place, after those at the same time. */
void chaos_schedule_add(struct chaos_schedule *schedule, const struct chaos_fault *fault);
void chaos_schedule_clear(struct chaos_schedule *schedule);

#endif
