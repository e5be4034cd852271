/* Frees a history, whoever made it: the reader, or a test by hand. */
#include "history/history.h"

#include <stdlib.h>

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; texts != NULL && i < count; i++) {
        free(texts[i]);
    }
    free(texts);
}

bool chaos_is_configured(const struct chaos_history *history) {
    struct chaos_setup all = chaos_setup_default(history->node_count);
    for (size_t i = 0; i < history->life_count; i++) {
        const struct chaos_setup *setup = &history->lives[i].setup;
        if (setup->nodes != 0 && (setup->nodes != all.nodes || setup->quorum != all.quorum)) {
            return true;
        }
    }
    return false;
}

void chaos_history_clear(struct chaos_history *history) {
    for (size_t i = 0; i < history->operation_count; i++) {
        free(history->operations[i].message);
    }
    for (size_t i = 0; i < history->lease_count; i++) {
        free(history->leases[i].claims);
    }
    for (size_t i = 0; i < history->sweep_count; i++) {
        for (size_t n = 0; history->sweeps[i].nodes != NULL && n < history->node_count; n++) {
            free(history->sweeps[i].nodes[n].line);
            free(history->sweeps[i].nodes[n].readers);
        }
        free(history->sweeps[i].nodes);
    }
    for (size_t i = 0; i < history->band_count; i++) {
        free(history->bands[i].text);
        free(history->bands[i].error);
    }
    free(history->operations);
    free(history->leases);
    free(history->increments);
    free(history->reads);
    free(history->sweeps);
    free(history->bands);
    free(history->lives);
    free(history->refusals);
    free(history->tallies);
    free(history->counters);
    free_texts(history->resources, history->resource_count);
    free_texts(history->left, history->left_count);
    free(history->version);
    free(history->command);
    free(history->backend);
    free(history->experiment);
    *history = (struct chaos_history){0};
}
