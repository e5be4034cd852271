/* What the tests of elections begin with: an election over a fake env, and what it told. The
 * observer is the test itself. */
#ifndef REDLOCK_TEST_ELECTION_KIT_H
#define REDLOCK_TEST_ELECTION_KIT_H

#include "election/campaign.h"
#include "group_kit.h"

#define TOLD_MAX 64

extern int observe_code;   /* what redlock_group_observe() returns */
extern unsigned observers; /* how many there are */

/* What the observer was told of our own terms. */
extern struct led {
    unsigned count;
    bool leads_still;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
} led;

extern struct redlock_elections elections;
extern redlock_election *election; /* the last one that was started */
extern unsigned told_count, read_count;
extern struct told {
    redlock_election_event_kind kind;
    redlock_lease *lease;
    uint64_t term, fence;
    int64_t remaining_ms;
    int code;
    char reason[256], message[512], token[REDLOCK_TOKEN_SIZE_MAX + 1], holder[64];
    bool is_self;
} told[TOLD_MAX];
/* When this is told, its callback makes this call, once. */
extern redlock_election_event_kind call_at;
extern int (*call)(redlock_election *election);

extern const struct group_setup three_named; /* three nodes; the holder's text is "me" */
int open_elections(void **state);
int close_elections(void **state);
#define ELECTION_TEST(function)                                                                                        \
    TEST_FROM(function, open_elections, close_elections, (void *)(uintptr_t) & (three_named))

/* The observer of the last election hears this. */
void announce(const char *token, const char *holder);

void take_event(const redlock_election_event *event, void *data);
/* The next event, which must be of this kind. */
const struct told *next(redlock_election_event_kind kind);
void assert_silent(void);

int start_with(const redlock_election_options *options);
void start(bool campaigns);
/* All nodes answer what waits there, again and again. */
void grant_all(void);
/* Starts an election, and all nodes grant it the lock. */
const struct told *lead(void);
/* The lease expires: nobody answers. */
void expire(void);
bool asks_for_the_lock(void);

#endif
