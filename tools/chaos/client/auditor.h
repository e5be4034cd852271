/* The auditor process: asks every node, past the proxy, who has which key. */
#ifndef CHAOS_AUDITOR_H
#define CHAOS_AUDITOR_H

#include <stddef.h>
#include <stdint.h>

struct chaos_auditor_options {
    const uint16_t *ports;
    size_t node_count;
    const char *const *resources;
    size_t resource_count;
    int64_t interval_ms; /* between the begins of two sweeps */
    int64_t timeout_ms;  /* a node that takes longer has not answered */
    const char *log_path;
};

/* Runs in a forked process until SIGTERM; returns 0. If something breaks, it ends the process with
 * status 70 and a sentence on standard error. */
int chaos_auditor_run(const struct chaos_auditor_options *options);

#endif
