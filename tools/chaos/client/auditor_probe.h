/* The auditor's connection to one node: asks it for all resources at once, and never waits. */
#ifndef CHAOS_AUDITOR_PROBE_H
#define CHAOS_AUDITOR_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "history/history.h"

/*
 * state       event                                       → state
 * AWAY        a sweep begins, RETRY_MS after the last try → CONNECTING
 * CONNECTING  connected: AUTH is sent                     → BEHIND
 *             no answer for CONNECT_MS                    → AWAY
 * IDLE        a sweep begins: the questions are sent      → ASKED
 * ASKED       the last answer                             → IDLE
 *             the sweep ends without it                   → BEHIND
 * BEHIND      the last answer that is owed (it is dropped) → IDLE
 *             none for BEHIND_MS                          → AWAY
 * any         closed, out of protocol, no memory          → AWAY
 */
enum chaos_probe_state {
    CHAOS_PROBE_AWAY,
    CHAOS_PROBE_CONNECTING,
    CHAOS_PROBE_IDLE,
    CHAOS_PROBE_ASKED,
    CHAOS_PROBE_BEHIND
};

struct chaos_probe {
    enum chaos_probe_state state;
    uint16_t port;       /* of 127.0.0.1 */
    int fd;              /* -1: AWAY */
    int64_t since_us;    /* of CONNECTING and BEHIND */
    int64_t next_try_us; /* of AWAY */
    redisReader *reader;
    size_t owed; /* BEHIND: answers that nobody waits for any more */
    size_t resources;
    size_t answered;   /* ASKED: answers so far */
    redisReply *first; /* the first GET of the resource whose answers are coming in */
    int64_t pttl_ms;
    struct chaos_sight sights[CHAOS_RESOURCES_MAX]; /* of the current sweep, or the last */
    /* when the last of its answers was taken; 0: none */
    int64_t last_us;
    bool complained;
};

/* One resource's questions: GET, PTTL, GET. Where both GETs say the same, PTTL was of that key. */
enum { CHAOS_PROBE_QUESTIONS = 3 };

void chaos_probe_init(struct chaos_probe *probe, uint16_t port, size_t resources);
void chaos_probe_clear(struct chaos_probe *probe);
/* Asks, if it can be asked now. */
void chaos_probe_begin(struct chaos_probe *probe, const char *questions, size_t size);
/* What it did not answer by now is not of this sweep any more. */
void chaos_probe_end(struct chaos_probe *probe);
/* What to poll for, and what to do when that came. */
short chaos_probe_events(const struct chaos_probe *probe);
void chaos_probe_io(struct chaos_probe *probe);

#endif
