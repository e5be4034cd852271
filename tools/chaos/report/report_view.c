/* Where everything of the page's timeline is: rows, lanes, ticks, and who did what in which order. */
#include "report/report_view.h"

#include <stdlib.h>
#include <string.h>

static void later(int64_t *end_us, int64_t at_us) {
    *end_us = at_us > *end_us ? at_us : *end_us;
}

/* A history without `finish` ends with the last thing that is known. */
static int64_t end_of(const struct chaos_history *history) {
    int64_t end_us = history->start_us;
    if (history->finish_us != CHAOS_NEVER_US) {
        return history->finish_us > end_us ? history->finish_us : end_us;
    }
    for (size_t i = 0; i < history->operation_count; i++) {
        later(&end_us, history->operations[i].invoked_us);
        later(&end_us, history->operations[i].completed_us);
    }
    for (size_t i = 0; i < history->lease_count; i++) {
        later(&end_us, history->leases[i].from_us);
        later(&end_us, history->leases[i].ended_us);
    }
    for (size_t i = 0; i < history->band_count; i++) {
        later(&end_us, history->bands[i].from_us);
        later(&end_us, history->bands[i].to_us);
    }
    for (size_t i = 0; i < history->life_count; i++) {
        later(&end_us, history->lives[i].ended_us);
    }
    return end_us;
}

int64_t chaos_view_tick(const struct chaos_view *view, int64_t at_us) {
    int64_t tick = (at_us - view->history->start_us) / view->tick_us;
    return tick < 0 ? 0 : tick > view->ticks ? view->ticks : tick;
}

int64_t chaos_view_band_end(const struct chaos_view *view, const struct chaos_band *band) {
    const struct chaos_fault_about *about = chaos_fault_about(band->fault.kind);
    int64_t end_us = view->history->start_us + view->end_us;
    int64_t to_us = band->to_us == CHAOS_NEVER_US ? (about->lasts ? end_us : band->from_us) : band->to_us;
    if (!about->lasts && (band->fault.kind == CHAOS_FAULT_SLOW || band->fault.kind == CHAOS_FAULT_BUSY)) {
        later(&to_us, band->from_us + band->fault.amount * 1000);
    }
    return to_us < band->from_us ? band->from_us : to_us;
}

enum chaos_shade chaos_view_shade(const struct chaos_band *band) {
    const struct chaos_fault_about *about = chaos_fault_about(band->fault.kind);
    if (about->breaks) {
        return CHAOS_SHADE_BREAKS;
    }
    if (about->target == CHAOS_TARGET_LINKS) {
        return CHAOS_SHADE_LINK;
    }
    return about->exclusive ? CHAOS_SHADE_DOWN : CHAOS_SHADE_ILL;
}

const char *chaos_view_shade_class(enum chaos_shade shade) {
    static const char *const classes[CHAOS_SHADES] = {"down", "link", "ill", "breaks"};
    return classes[shade];
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
    for (size_t i = 0; i < history->life_count; i++) {
        const struct chaos_life *life = &history->lives[i];
        if (life->client == lease->client && life->ended_us >= lease->from_us && life->ended_us <= end_us) {
            *how = life->status == 0 ? CHAOS_HOW_HELD : CHAOS_HOW_DIED;
            end_us = life->ended_us;
        }
    }
    return lease->until_us < end_us ? lease->until_us : end_us;
}

const struct chaos_operation *chaos_view_acquire(const struct chaos_view *view, const struct chaos_lease *lease,
                                                 size_t *cursor) {
    const struct chaos_operation *found = NULL;
    size_t end = view->operation_first[lease->client + 1];
    for (; *cursor < end; ++*cursor) {
        const struct chaos_operation *operation = &view->history->operations[view->operations[*cursor]];
        if (operation->invoked_us > lease->from_us) {
            break;
        }
        if (operation->what == CHAOS_ACQUIRE && operation->completed_us != CHAOS_NEVER_US &&
            operation->completed_us <= lease->from_us) {
            found = operation;
        }
    }
    bool gave = found != NULL && found->resource == lease->resource && strcmp(found->result, "OK") == 0;
    return gave ? found : NULL;
}

bool chaos_view_failed(const struct chaos_operation *operation) {
    return operation->what == CHAOS_ACQUIRE && operation->completed_us != CHAOS_NEVER_US &&
           strcmp(operation->result, "OK") != 0;
}

bool chaos_view_given_up(const struct chaos_operation *operation) {
    return strcmp(operation->result, "CLOSED") == 0 || strcmp(operation->result, "CANCELLED") == 0;
}

int64_t chaos_view_bucket_us(const struct chaos_view *view) {
    static const int64_t factors[] = {1, 2, 5};
    for (int64_t power = 100000;; power *= 10) {
        for (size_t i = 0; i < 3; i++) {
            if (factors[i] * power >= 500000 && view->end_us / (factors[i] * power) <= 60) {
                return factors[i] * power;
            }
        }
    }
}

/* The first lane of the node whose last fault was over before this one begins; the last one of them if all are taken. */
static void lay_out_node(struct chaos_view *view, size_t node) {
    const struct chaos_history *history = view->history;
    int64_t free_us[CHAOS_VIEW_LANES_MAX];
    size_t used = 1;
    for (size_t i = 0; i < CHAOS_VIEW_LANES_MAX; i++) {
        free_us[i] = INT64_MIN;
    }
    for (size_t i = 0; i < history->band_count; i++) {
        const struct chaos_band *band = &history->bands[i];
        if ((band->fault.nodes >> node & 1) == 0) {
            continue;
        }
        size_t lane = 0;
        while (lane < CHAOS_VIEW_LANES_MAX - 1 && free_us[lane] > band->from_us) {
            lane++;
        }
        view->lanes[i * history->node_count + node] = (uint8_t)lane;
        later(&free_us[lane], chaos_view_band_end(view, band));
        used = lane + 1 > used ? lane + 1 : used;
    }
    view->node_height[node] = (int)used * CHAOS_VIEW_LANE + 5;
}

static bool lay_out(struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    view->lanes = calloc(history->band_count * history->node_count + 1, 1);
    if (view->lanes == NULL) {
        return false;
    }
    int y = view->verdict->violation_count > 0 ? CHAOS_VIEW_VIOLATIONS + 4 : 0;
    for (size_t i = 0; i < history->node_count; i++) {
        lay_out_node(view, i);
        view->node_y[i] = y;
        y += view->node_height[i];
    }
    view->pitch = history->client_count <= 8 ? 24 : history->client_count <= 32 ? 19 : 15;
    view->bar = view->pitch <= 15 ? 9 : view->pitch <= 19 ? 11 : 14;
    view->clients_y = y + 10;
    view->height = view->clients_y + view->pitch * (int)history->client_count;
    return true;
}

/* Groups the indexes of items by their client, which `offset` finds in an item; the order within a group stays. */
static size_t *group(const void *items, size_t count, size_t size, size_t offset, size_t clients, size_t *first) {
    size_t *order = malloc((count + 1) * sizeof *order), next[CHAOS_CLIENTS_MAX] = {0};
    if (order == NULL) {
        return NULL;
    }
    memset(first, 0, (CHAOS_CLIENTS_MAX + 1) * sizeof *first);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count; i++) {
            int client;
            memcpy(&client, (const char *)items + i * size + offset, sizeof client);
            if (client < 0 || (size_t)client >= clients) {
                continue;
            }
            if (pass == 0) {
                first[client + 1]++;
            } else {
                order[first[client] + next[client]++] = i;
            }
        }
        for (size_t i = 0; pass == 0 && i < CHAOS_CLIENTS_MAX; i++) {
            first[i + 1] += first[i];
        }
    }
    return order;
}

bool chaos_view_make(struct chaos_view *view, const struct chaos_history *history, const struct chaos_verdict *verdict,
                     const struct chaos_experiment *experiment) {
    *view = (struct chaos_view){.history = history, .verdict = verdict, .experiment = experiment, .tick_us = 100};
    view->end_us = end_of(history) - history->start_us;
    /* A browser draws with 24 bits of precision. */
    while (view->end_us / view->tick_us > 8000000) {
        view->tick_us *= 10;
    }
    view->ticks = view->end_us / view->tick_us + 1;
    view->leases = group(history->leases, history->lease_count, sizeof *history->leases,
                         offsetof(struct chaos_lease, client), history->client_count, view->lease_first);
    view->operations = group(history->operations, history->operation_count, sizeof *history->operations,
                             offsetof(struct chaos_operation, client), history->client_count, view->operation_first);
    return view->leases != NULL && view->operations != NULL && lay_out(view);
}

void chaos_view_clear(struct chaos_view *view) {
    free(view->lanes);
    free(view->leases);
    free(view->operations);
}
