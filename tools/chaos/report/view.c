/* What the page says of a run beyond its history: when things were over, and how they ended. */
#include "report/parts.h"

int64_t chaos_view_band_end(const struct chaos_view *view, const struct chaos_band *band) {
    int64_t end_us = view->history->start_us + view->end_us;
    bool lasts = chaos_fault_about(band->fault.kind)->lasts;
    int64_t to_us = band->to_us == CHAOS_NEVER_US ? (lasts ? end_us : band->from_us) : band->to_us;
    return chaos_most(to_us, band->from_us + chaos_fault_length_ms(&band->fault) * 1000);
}

const char *chaos_view_shade(const struct chaos_band *band) {
    const struct chaos_fault_about *about = chaos_fault_about(band->fault.kind);
    if (about->breaks) {
        return "breaks";
    }
    if (about->target == CHAOS_TARGET_LINKS) {
        return "link";
    }
    return about->exclusive ? "down" : "ill";
}

int64_t chaos_view_lease_end(const struct chaos_view *view, const struct chaos_lease *lease, enum chaos_how *how) {
    const struct chaos_history *history = view->history;
    int64_t end_us = history->start_us + view->end_us;
    if (lease->ended_us != CHAOS_NEVER_US) {
        bool late = lease->ended_us > lease->until_us;
        *how = !lease->released ? CHAOS_HOW_LOST : late ? CHAOS_HOW_LATE : CHAOS_HOW_RELEASED;
        return late ? lease->until_us : lease->ended_us;
    }
    *how = CHAOS_HOW_HELD;
    CHAOS_EACH(const struct chaos_life, life, history->lives, history->life_count) {
        if (life->client == lease->client && life->ended_us >= lease->from_us && life->ended_us <= end_us) {
            *how = life->status == 0 ? CHAOS_HOW_HELD : CHAOS_HOW_DIED;
            end_us = life->ended_us;
        }
    }
    return lease->until_us < end_us ? lease->until_us : end_us;
}

struct chaos_view chaos_view_of(const struct chaos_history *history, const struct chaos_verdict *verdict,
                                const struct chaos_experiment *experiment) {
    int64_t end_us = chaos_history_end_us(history) - history->start_us;
    struct chaos_view view = {history, verdict, experiment, end_us < 0 ? 0 : end_us, 100};
    /* A browser draws with 24 bits of precision. */
    while (view.end_us / view.tick_us > 8000000) {
        view.tick_us *= 10;
    }
    return view;
}
