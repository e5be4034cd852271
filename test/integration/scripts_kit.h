/* One real server, the bytes that the library sends to it, and the votes that the library reads in
 * the answers. */
#ifndef TEST_INTEGRATION_SCRIPTS_KIT_H
#define TEST_INTEGRATION_SCRIPTS_KIT_H

#include "servers.h"
#include "test.h"
#include "wire/script.h"
#include "wire/wire.h"

#define OURS   "0123456789abcdef0123456789abcdef"
#define THEIRS "fedcba9876543210fedcba9876543210"
#define TTL_MS INT64_C(600000)

extern struct server *server;
extern struct raw line; /* the connection of the library, as user "all" at first */

/* Setups of the group and of each test: a server without keys that knows the scripts. */
int scripts_begin(void **state);
int scripts_end(void **state);
int scripts_setup(void **state);
int scripts_teardown(void **state);

/* Deletes all keys. */
void start_anew(void);
const char *say(const char *command, const char *key);
void lock_as(const char *token);
void unlock(void);
void set_counter(uint64_t number);
int64_t server_now_us(void);
void assert_value(const char *key, const char *value);
void assert_counter(uint64_t number);

/* A message about "door", whose counter is "door:fence". */
struct redlock_message message_of(enum redlock_operation operation, uint64_t fence);

/* Sends the script by its SHA1 or its source, with the time or without. All else is the same. */
#define FORMS 4
void take_form(struct redlock_message *message, size_t index);

/* The text of the answer is freed; assert_says() still knows it. */
struct redlock_answer ask(const struct redlock_message *message);
void assert_says(const char *words);

/* A vote, and what it says of the counter. */
void assert_answer(const struct redlock_message *message, redlock_vote_kind vote, bool fenced, bool accepted,
                   uint64_t counter);
/* GRANTED, with its fencing token accepted if it has one. */
void assert_granted(const struct redlock_message *message);
void assert_denied(const struct redlock_message *message, const char *words);
/* An error reply: nothing of it may have been applied (R4). */
void assert_failed(const struct redlock_message *message, const char *words);

#endif
