/* What the fake node's commands and scripts share: its keys, and the words of its replies. */
#ifndef SIM_FAKE_STORE_H
#define SIM_FAKE_STORE_H

#include "command.h"
#include "fake_node.h"
#include "wire/script.h"

static inline bool fake_is(const struct sim_argument *argument, const char *word) {
    const size_t size = argument->size;
    /* Most words differ in the first letter, whatever its case. */
    return size > 0 && ((argument->bytes[0] ^ word[0]) & ~0x20) == 0 && strncasecmp(argument->bytes, word, size) == 0 &&
           word[size] == '\0';
}
/* Write these, and return the end. `least`: so many digits. No zero follows. */
char *fake_digits(char *at, uint64_t value, unsigned least);
char *fake_bytes(char *at, const char *bytes, size_t size);
bool fake_integer(const struct sim_argument *argument, int64_t *value);

void fake_reply_bytes(struct fake_reply *reply, enum redlock_reply_type type, const char *bytes);
void fake_reply_integer(struct fake_reply *reply, int64_t value);
/* With the mark, as GET tells it. */
void fake_reply_raw_value(struct fake_reply *reply, const struct fake_key *key);
/* As a STRING, or as the first element of an INSPECT; without the mark, as scripts tell it. */
void fake_reply_value(struct fake_reply *reply, const struct fake_key *key);
void fake_reply_wrong_type(struct fake_reply *reply);
void fake_reply_time(struct fake_reply *reply, struct fake_node *node);

/* Whether the mode of the node forbids this write, with the reply if it does; `grows`: the write
 * needs memory. */
bool fake_refused(const struct fake_node *node, bool grows, struct fake_reply *reply);

struct fake_key *fake_find(struct fake_node *node, const struct sim_argument *name);
/* Sets the key, without a ttl. Returns NULL if there is no room. */
struct fake_key *fake_add(struct fake_node *node, const struct sim_argument *name, const struct sim_argument *value);
/* Adds an empty set, of which there is none. Returns NULL if there is no room. */
struct fake_key *fake_add_set(struct fake_node *node, const struct sim_argument *name, enum fake_type type);
void fake_delete(struct fake_node *node, struct fake_key *key);
void fake_expire(struct fake_node *node, struct fake_key *key, int64_t ttl_ms);
int64_t fake_ttl(const struct fake_node *node, const struct fake_key *key);

/* --- fake_scripts.c --- */
/* a: keys and arguments, `count` of them, of which `keys` are keys. */
void fake_script_run(struct fake_node *node, unsigned id, const struct sim_argument *a, size_t keys, size_t count,
                     struct fake_reply *reply);

/* The scripts that no handshake loads have numbers behind those of the others. */
#define FAKE_SCRIPT_SHARE REDLOCK_SCRIPT_COUNT
#define FAKE_SCRIPT_SLOTS (REDLOCK_SCRIPT_COUNT + 1)
#define FAKE_SCRIPT_COUNT (REDLOCK_SCRIPT_COUNT + 2)
const struct redlock_script *fake_script_get(unsigned id);

bool fake_holds(const struct fake_key *key, const struct sim_argument *value);

/* --- fake_wait.c --- */
/* a: lock, queue, waiters, and the first nine arguments of a WAIT. */
void fake_queue_wait(struct fake_node *node, const struct sim_argument *a, bool announces, struct fake_reply *reply);
/* --- fake_share.c --- */
/* a: lock; v: token, ttl, what, suffix. What SHARE answers: 1, 0 or -1. */
int64_t fake_may_read(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *v);
/* If that is 1: does it. False if the server refuses it, with the reply. */
bool fake_read(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *v, int64_t ttl_ms,
               struct fake_reply *reply);
/* --- fake_slots.c --- */
/* a: gate, token, what, and its arguments, `count` of them. */
void fake_slots_run(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply);
/* --- fake_release.c --- */
/* a: lock, token, suffix or none, and more up to `count`: with four, it looks into the queue,
 * marked or not; with five, it announces. `handing`: enum redlock_handing, or a time to leave the
 * lock free. */
void fake_queue_release(struct fake_node *node, const struct sim_argument *a, int64_t handing, size_t count,
                        struct fake_reply *reply);
/* So many members and fields can be added. */
unsigned fake_queue_room(const struct fake_node *node);
/* Puts a waiter whose token is new into the queue and the hash. when: its ticket, and for how long
 * its place is good. *at: below it no member is free; 0 at first. */
void fake_queue_add(struct fake_node *node, struct fake_key *const sets[2], int64_t ttl_ms, const char *token,
                    const char *channel, const int64_t when[2], unsigned *at);
/* a: lock, suffix. How many wait, and for how long the first has. */
void fake_queue_look(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply);

#endif
