/* What the scripts WAIT and RELEASE share, on the fake node. */
#ifndef SIM_FAKE_QUEUE_H
#define SIM_FAKE_QUEUE_H

#include "fake_store.h"
#include "wire/message.h"

#define FAKE_LEFT "left"

/* The lock is NOBODY's: anybody's, to be deleted. */
enum fake_served { FAKE_NOBODY, FAKE_SERVED, FAKE_WRONG_TYPE };

bool fake_is_part_of(const struct fake_part *part, const struct fake_key *set);
/* The part of this token; NULL if there is none. */
struct fake_part *fake_find_part(struct fake_node *node, const struct fake_key *set, const char *token, size_t size);
/* The same, new if there is none; NULL without room. */
struct fake_part *fake_put_part(struct fake_node *node, const struct fake_key *set, const struct sim_argument *token);
/* If there is one. A set without members is gone. */
void fake_drop_part(struct fake_node *node, struct fake_key *set, struct fake_part *part);
/* As in a sorted set: by ticket, then by bytes. */
bool fake_is_before(const struct fake_part *a, const struct fake_part *b);
struct fake_part *fake_first_part(struct fake_node *node, const struct fake_key *set);
/* At most FAKE_PARTS_MAX of them, in order. Returns how many. */
unsigned fake_sort_parts(struct fake_node *node, const struct fake_key *set, struct fake_part **parts);
/* The set of this name. False if a key of another type has it. */
bool fake_find_set(struct fake_node *node, const struct sim_argument *name, enum fake_type type, struct fake_key **set);
/* ZREM, HDEL, whose errors are ignored. Returns whether it was there. */
bool fake_leave(struct fake_node *node, const struct sim_argument *name, enum fake_type type,
                const struct sim_argument *token);
bool fake_is_token(const struct fake_part *part, const struct sim_argument *token);
/* Whether this field of the hash, NULL for none, is that of a waiter who can be served. `own` needs
 * no push. */
bool fake_is_living(const struct fake_node *node, const struct fake_part *waiter, const struct sim_argument *own);
/* Tells the waiter that the lock is its own, or left free. Returns whether somebody listens. */
bool fake_publish(const struct fake_node *node, const struct sim_argument *lock, const struct fake_part *waiter,
                  bool is_left);
/* Those to whom a script has handed the lock. */
struct fake_told {
    unsigned count;
    bool own;               /* who asks is one of them */
    struct fake_part first; /* if there are any */
};

/* For observers: who has the lock now, or "". Whether anybody listens does not matter. */
void fake_announce(struct fake_node *node, const struct sim_argument *lock, const struct fake_told *told);
/* a: lock, queue, waiters. `shared`: others read the lock. SERVED if somebody was told. */
enum fake_served fake_serve(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *own,
                            bool shared, struct fake_told *told);
void fake_delete_lock(struct fake_node *node, const struct sim_argument *name);
/* a: lock, queue, waiters, own token. Drops the dead before the living, as far as it may. */
void fake_drop_dead(struct fake_node *node, const struct sim_argument *a);

/* The names of a lock's queue and of its waiters, in this memory. */
struct fake_names {
    char queue[2 * FAKE_NAME_MAX], waiters[2 * FAKE_NAME_MAX + 2];
    struct sim_argument of[4]; /* lock, queue, waiters, token */
};
void fake_name_queue(struct fake_names *names, const struct sim_argument *lock, const struct sim_argument *suffix,
                     const struct sim_argument *token);

/* --- fake_share.c: those who read --- */
bool fake_reads(const char *token, size_t size);
/* Whether others read the lock. NULL for none. */
bool fake_is_read(const struct fake_node *node, const struct fake_key *lock);
/* Lets the token read for so long. */
void fake_join(struct fake_node *node, const struct sim_argument *lock, const struct sim_argument *token,
               int64_t ttl_ms);
/* Takes the entry out. The key ends with the last that is left. */
void fake_end_reading(struct fake_node *node, struct fake_key *lock, struct fake_part *part);
/* The lowest token of those who read by now; NULL for nobody. Counts them. */
const struct fake_part *fake_lowest(const struct fake_node *node, const struct fake_key *lock, unsigned *reading);
/* Adds a name, or those of all who read now, as an INSPECT tells them. */
void fake_name(struct fake_node *node, struct fake_reply *reply, char kind, const struct fake_part *part, int64_t ms);
void fake_name_readers(struct fake_node *node, const struct fake_key *lock, struct fake_reply *reply);

#endif
