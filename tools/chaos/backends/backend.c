/* Chooses the way in which nodes are run. */
#include "backends/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/fault.h"

struct chaos_backend *chaos_backend_create(const char *name, const struct chaos_backend_options *options,
                                           struct chaos_error *error) {
    if (options->nodes < 1 || options->nodes > CHAOS_NODES_MAX) {
        chaos_fail(error, "%zu nodes cannot be started; 1 to %d can", options->nodes, CHAOS_NODES_MAX);
        return NULL;
    }
    struct chaos_backend *backend = calloc(1, sizeof *backend);
    if (backend == NULL) {
        chaos_fail(error, "out of memory");
        return NULL;
    }
    backend->options = *options;
    bool made = false;
    if (strcmp(name, "process") == 0) {
        made = chaos_backend_process(backend, error);
    } else if (strcmp(name, "compose") == 0) {
        made = chaos_backend_compose(backend, error);
    } else {
        chaos_fail(error, "there is no backend %s; there are process and compose", name);
    }
    if (!made) {
        free(backend);
        return NULL;
    }
    return backend;
}

void chaos_backend_destroy(struct chaos_backend *backend) {
    if (backend == NULL) {
        return;
    }
    (void)backend->ops->stop(backend, NULL);
    for (size_t n = 0; n < CHAOS_NODES_MAX; n++) {
        chaos_clock_close(backend->clocks[n]);
    }
    free(backend);
}
