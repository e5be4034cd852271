/* What the tests of a queue on a real server begin with. */
#ifndef TEST_INTEGRATION_QUEUE_SCRIPTS_H
#define TEST_INTEGRATION_QUEUE_SCRIPTS_H

#include "scripts_kit.h"

#define FIRST   "00000000000000aa0123456789abcdef0123456789abcdef"
#define SECOND  "00000000000000bb0123456789abcdef0123456789abcdef"
#define THIRD   "00000000000000cc0123456789abcdef0123456789abcdef"
#define QUEUE   "door:wait"
#define WAITERS "door:waiter"
#define CHANNEL "redlock:heard"
#define DEAF    "redlock:nobody"

#define STALE_MS INT64_C(300000)
#define QUEUE_MS INT64_C(900000)

/* Who subscribes to CHANNEL. */
extern struct raw listener;

int queue_setup(void **state);
int queue_teardown(void **state);
#define QUEUE_TEST(name) TEST_WITH(name, queue_setup, queue_teardown)

struct redlock_message message_with(enum redlock_operation operation, const char *token);

/* A WAIT of the serial 5 and the id 9, which takes a lock that is free. */
struct wait {
    const char *token;
    uint64_t ticket;
    const char *channel; /* NULL: CHANNEL */
    int64_t stale_ms;    /* 0: STALE_MS */
    bool enters_only, by_source;
};

struct redlock_answer wait_as(struct wait wait);
void assert_taken(struct wait wait);
/* Queued: as number `rank`, behind this holder; NULL for none. */
void assert_queued(struct wait wait, uint32_t rank, const char *holder);

enum released { MISSING, OTHERS, DELETED, HANDED_OVER };

enum released released_by(const struct redlock_message *message);
enum released release_with(const char *token, enum redlock_handing handing);
enum released release_as(const char *token);
void assert_free(void);
/* Puts a place into the queue as a WAIT would, whose entry is good for so long. */
void queue_add(uint64_t ticket, const char *token, const char *channel, int64_t good_ms);
/* Subscribers see this push next. */
void assert_pushed(const char *token);
/* They see next, on this channel, that the lock is left free. */
void assert_told(const char *token, const char *channel);
/* Nothing was pushed: a ping is answered first. */
void assert_silence(void);

#endif
