/* What the library's guards promise: which faults they are for, and which nodes they keep from
 * voting. */
#include "checks/check_parts.h"

bool chaos_is_guarded(const struct chaos_history *history, const struct chaos_fault *fault) {
    const struct chaos_protection *protection = &history->protection;
    switch (fault->kind) {
    case CHAOS_FAULT_CLOCK_JUMP:
        return protection->clock_guard;
    case CHAOS_FAULT_KILL:
    case CHAOS_FAULT_RESTART_EMPTY:
        /* An append-only file that is deleted makes a node look as if it remembered. */
        return history->memoryless && protection->restart_guard != CHAOS_RESTART_GUARD_OFF;
    default:
        return false;
    }
}

/*
 * Votes that a node forgot at a time r support leases that end by r + ttl_max (docs/safety.md), and
 * for so long the guard keeps it from voting. r lies between the fault's begin and its end.
 */
bool chaos_kept_out(const struct chaos_history *history, size_t node, int64_t from_us, int64_t to_us) {
    for (size_t i = 0; i < history->band_count && chaos_has_guard(&history->protection); i++) {
        const struct chaos_band *band = &history->bands[i];
        if (!chaos_hits_node(&band->fault, node) || band->from_us > to_us || !chaos_is_guarded(history, &band->fault)) {
            continue;
        }
        int64_t end_us = band->to_us == CHAOS_NEVER_US ? chaos_history_end_us(history) : band->to_us;
        if (from_us <= chaos_plus(end_us, history->protection.ttl_max_ms * 1000)) {
            return true;
        }
    }
    return false;
}
