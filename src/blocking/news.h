/* What an election has told and nobody has read yet: merged, so that it is bounded and never out of
 * date. */
#ifndef REDLOCK_BLOCKING_NEWS_H
#define REDLOCK_BLOCKING_NEWS_H

#include <stdbool.h>

#include <redlock/election.h>

#define REDLOCK_NEWS_TEXT_SIZE 1024

/* The texts that an event points to. */
struct redlock_news_texts {
    char reason[REDLOCK_NEWS_TEXT_SIZE];
    char token[REDLOCK_TOKEN_SIZE_MAX + 1], holder[REDLOCK_TOKEN_SIZE_MAX + 1];
};

struct redlock_news {
    unsigned waiting; /* a bit for each kind of event */
    redlock_election_event event[REDLOCK_ELECTION_EXPIRING + 1];
    redlock_leader leader;
    struct redlock_news_texts texts; /* of LOST and LEADER */
    /* What was read last. */
    redlock_election_event told;
    redlock_leader told_leader;
    struct redlock_news_texts told_texts;
};

/* Copies the event. Without memory for its result, it has none. */
void redlock_news_add(struct redlock_news *news, const redlock_election_event *event);
/* Takes the next event; NULL if none waits. It is valid until the next call of this function. */
const redlock_election_event *redlock_news_take(struct redlock_news *news);
void redlock_news_clear(struct redlock_news *news);

#endif
