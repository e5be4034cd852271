/* The Lua scripts that compare the token and act in one step (R11), with their SHA1. */
#ifndef REDLOCK_WIRE_SCRIPT_H
#define REDLOCK_WIRE_SCRIPT_H

#include <stddef.h>

/* Where a reply has more to tell than a number n, it is an array: {n, counter or nil[, seconds, microseconds]} of the node's TIME. */
enum redlock_script_id {
    REDLOCK_SCRIPT_RELEASE, /* KEYS[1] key, ARGV[1] token: 1 deleted, 0 missing, -1 another token */
    REDLOCK_SCRIPT_EXTEND, /* KEYS[1] key, ARGV[1] token, ARGV[2] ttl ms[, ARGV[3] timed]: 1 lives that long or longer, 0 missing, -1 other */
    REDLOCK_SCRIPT_INSPECT, /* KEYS[1] key: {value or false, PTTL} */
    /*
     * KEYS[1] key[, KEYS[2] counter], ARGV[1] token, ARGV[2] ttl ms, ARGV[3] proposal or "", ARGV[4] the counter's expiry in ms or 0,
     * ARGV[5] 1 for timed: 1 set (and the proposal accepted), 2 set, but the counter is not below the proposal, 0 held.
     */
    REDLOCK_SCRIPT_ACQUIRE,
    /* KEYS[1] key, KEYS[2] counter, ARGV[1] token, ARGV[2] number, ARGV[3] expiry: 1 raised to it, 2 not below it, 0 key missing, -1 other */
    REDLOCK_SCRIPT_FENCE,
    REDLOCK_SCRIPT_COUNT,
#ifdef REDLOCK_PLANTED_BUGS
    REDLOCK_SCRIPT_PLANTED_RELEASE = REDLOCK_SCRIPT_COUNT, /* RELEASE_ANY_TOKEN: 1 deleted, 0 missing */
    REDLOCK_SCRIPT_PLANTED_EXTEND,                         /* EXTEND_SHORTENS: 1 set anew, 0 not ours */
    REDLOCK_SCRIPT_PLANTED_INCR,  /* FENCE_INCR, ACQUIRE's keys and arguments: {2, the node's own count}, 0 held */
    REDLOCK_SCRIPT_PLANTED_EQUAL, /* FENCE_ACCEPTS_EQUAL: ACQUIRE, where an equal counter does not beat the proposal */
    REDLOCK_SCRIPT_PLANTED_FENCE, /* FENCE_ACKS_ANY: FENCE with neither a look at the lock nor at an equal counter */
    REDLOCK_SCRIPT_PLANTED_HEAL,  /* HEAL_COUNTS: EXTEND, where a missing key is set, and 1 */
    REDLOCK_SCRIPT_PLANTED_COUNT
#endif
};

#define REDLOCK_SHA1_SIZE 40

struct redlock_script {
    const char *source;
    size_t source_size;
    const char *sha1; /* 40 hexadecimal digits; a test compares it with a server's own */
};

const struct redlock_script *redlock_script_get(enum redlock_script_id id);

#endif
