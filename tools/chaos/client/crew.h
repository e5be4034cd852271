/* The conductor's own processes: clients and the auditor. */
#ifndef CHAOS_CREW_H
#define CHAOS_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/auditor.h"
#include "client/client.h"
#include "history/log.h"

struct chaos_member {
    pid_t pid;     /* 0: does not run */
    bool expected; /* the nemesis killed it */
    bool leaving;  /* it was asked to end, and to begin anew */
    bool again;    /* it is not the client's first process */
};

struct chaos_crew {
    size_t client_count;
    struct chaos_member clients[CHAOS_CLIENTS_MAX];
    struct chaos_client_options client[CHAOS_CLIENTS_MAX];
    struct chaos_auditor_options auditor_options;
    pid_t auditor;
    bool ending;      /* clients were asked to end: that they do is expected */
    size_t crashes;   /* ends that nobody expected */
    uint64_t spawned; /* processes so far: each has random numbers of its own */
    struct chaos_log *log;
};

/* These fork; the child never returns. False with errno. A client that runs already is left
 * alone. */
bool chaos_crew_spawn(struct chaos_crew *crew, size_t client);
bool chaos_crew_spawn_auditor(struct chaos_crew *crew);
/* A client that runs is asked to end: whoever spawns it again starts it with this setup, and with
 * the URIs of these nodes. False with errno. */
bool chaos_crew_configure(struct chaos_crew *crew, size_t client, const struct chaos_setup *setup);
/* SIGKILL counts as expected from then on. False if it does not run. */
bool chaos_crew_signal(struct chaos_crew *crew, size_t client, int signal);
/* Writes down a process that has ended, by waitpid()'s words. False if it is none of the crew. */
bool chaos_crew_ended(struct chaos_crew *crew, pid_t pid, int status);
size_t chaos_crew_running(const struct chaos_crew *crew);

#endif
