/* An acquire of permits, and the gate where it waits (docs/protocols.md, "Permits"). */
#ifndef REDLOCK_GROUP_PERMITS_H
#define REDLOCK_GROUP_PERMITS_H

#include "group/handle.h"

/* OK or ERR_INVALID. */
int redlock_permits_check(struct redlock_error_text *failure, const redlock_acquire_options *options);
/* The same of the slots: only an adoption has some. */
int redlock_permits_check_slots(struct redlock_error_text *failure, const redlock_acquire_options *options,
                                bool adopts);
/* Whether it waits at the gate. */
static inline bool redlock_permits_in_order(const redlock_acquire_options *options) {
    return options->permits > 0 && options->wait_timeout_ms != 0 && options->order == REDLOCK_ORDER_FAIR;
}

/* Prepares an acquire. `ask_gate` acquires the gate with the options below, and its callback. */
void redlock_permits_begin(struct redlock_lease *lease, bool in_order, int64_t now_ns,
                           int (*ask_gate)(struct redlock_lease *lease, struct redlock_lease **gate));
redlock_acquire_options redlock_permits_gate_options(struct redlock_lease *lease);
void redlock_permits_at_gate(const redlock_result *result, void *data);
/* The lease has these slots. */
void redlock_permits_adopt(struct redlock_lease *lease, const uint32_t *slots);
/* A node says that a slot of this gate is free. Anybody who may publish can say that. */
void redlock_permits_told(struct redlock_lease *gate, unsigned node, uint64_t slot);

#endif
