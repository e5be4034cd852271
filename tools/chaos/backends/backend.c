/* Chooses the way in which nodes are run. */
#include "backends/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/node_files.h"
#include "faults/fault.h"
#include "faults/lists.h"

struct chaos_backend *chaos_backend_create(const char *name, const struct chaos_backend_options *options,
                                           struct chaos_error *error) {
    if (options->nodes < 1 || options->nodes > CHAOS_NODES_MAX) {
        chaos_fail(error, "%zu nodes cannot be started; 1 to %d can", options->nodes, CHAOS_NODES_MAX);
        return NULL;
    }
    struct chaos_backend *backend = chaos_allocate(1, sizeof *backend);
    backend->options = *options;
    for (size_t n = 0; n < options->nodes; n++) {
        snprintf(backend->directories[n], PATH_MAX, "%s/node-%zu", options->directory, n + 1);
    }
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

bool chaos_backend_make_directories(struct chaos_backend *backend, struct chaos_error *error) {
    for (size_t n = 0; n < backend->options.nodes; n++) {
        struct chaos_clock **clock = backend->options.shim != NULL ? &backend->clocks[n] : NULL;
        if (!chaos_node_make(backend->directories[n], clock)) {
            return chaos_fail(error, "node %zu: its directory %s cannot be made: %s", n + 1, backend->directories[n],
                              strerror(errno));
        }
    }
    return true;
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
