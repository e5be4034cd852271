/* A client process: acquires, increments a shared counter or reads it, releases, over and over, and
 * writes down all that it does. */
#ifndef CHAOS_CLIENT_H
#define CHAOS_CLIENT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/experiments.h"

/* What asks the processes of a run to end. Blocked before they begin, so that it waits for them. */
static inline sigset_t chaos_stop_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return set;
}

struct chaos_client_options {
    size_t client;            /* from 0 */
    uint64_t seed;            /* of this process */
    const char *const *nodes; /* URIs of this client's links, to the nodes of its setup */
    size_t node_count;
    const char *ca_file;      /* whom the client trusts, if it speaks TLS; NULL: it does not */
    struct chaos_setup setup; /* all zero: all nodes, and more than half of them */
    const char *const *resources;
    size_t resource_count;
    const char *log_path;
    const char *counters_path; /* the guarded resources: resource.h */
    const struct chaos_settings *settings;
    bool late; /* begun after the run's begin: nodes may have restarted before it could see them */
};

/* Runs in a forked process until SIGTERM, then ends the operation that is under way, releases, and
 * returns 0. If something breaks, it ends the process with status 70 and a sentence on standard
 * error. */
int chaos_client_run(const struct chaos_client_options *options);

#endif
