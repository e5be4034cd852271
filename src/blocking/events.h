/* What an election has told and nobody has read yet: merged, so that it is bounded and never out of
 * date. */
#ifndef REDLOCK_BLOCKING_EVENTS_H
#define REDLOCK_BLOCKING_EVENTS_H

#include <stdbool.h>

#include <redlock/election.h>

#define REDLOCK_EVENTS_TEXT_SIZE 1024

/* The texts that an event points to. */
struct redlock_events_texts {
    char reason[REDLOCK_EVENTS_TEXT_SIZE];
    char token[REDLOCK_TOKEN_SIZE_MAX + 1], holder[REDLOCK_TOKEN_SIZE_MAX + 1];
};

struct redlock_events {
    unsigned waiting; /* a bit for each kind of event */
    redlock_election_event event[REDLOCK_ELECTION_EXPIRING + 1];
    redlock_leader leader;
    struct redlock_events_texts texts; /* of LOST and LEADER */
    /* What was read last. */
    redlock_election_event told;
    redlock_leader told_leader;
    struct redlock_events_texts told_texts;
};

/* Copies the event. Without memory for its result, it has none. */
void redlock_events_add(struct redlock_events *events, const redlock_election_event *event);
/* Takes the next event; NULL if none waits. It is valid until the next call of this function. */
const redlock_election_event *redlock_events_take(struct redlock_events *events);
void redlock_events_clear(struct redlock_events *events);

#endif
