/* Processes that take one lock, each with a loop and a manager of its own. */
/*
 * They tell what happens on a page that all share. Each writes there until when it believes to hold
 * the lock, and looks whether anybody else believes the same. crowd_start() forks, so the program
 * that calls it must have no manager.
 */
#ifndef TEST_INTEGRATION_CROWD_H
#define TEST_INTEGRATION_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "test.h"
#include <redlock/redlock.h>

#include "servers.h"
#include "support.h"

#define CROWD_MAX        16
#define CROWD_TURNS      2048
#define CROWD_RESOURCE   "crowd"
#define CROWD_TIMEOUT_MS 60000

enum crowd_kind {
    CROWD_QUEUES = 0,
    CROWD_POLLS,    /* REDLOCK_ORDER_NONE */
    CROWD_IS_OLD,   /* an older version: SET NX, and a script that only deletes */
    CROWD_STRANGER, /* the same with a token of another library */
    CROWD_ELECTS,   /* a candidate; auto_extend goes without saying */
    CROWD_OBSERVES  /* an election that does not campaign */
};

struct crowd_options {
    enum crowd_kind kind;
    int64_t ttl_ms, node_timeout_ms;
    const char *key_prefix;
    bool auto_extend, restart_guard;
    int at_once;              /* how many acquires wait at a time; 0: one */
    int64_t hold_ms, rest_ms; /* rest: after a release, up to twice as long */
};

struct member {
    struct crowd_options options;
    pid_t pid; /* 0: has ended */
    /* Set by the test. */
    atomic_int wanted;              /* acquires */
    atomic_bool keeps;              /* does not release what it holds */
    atomic_bool leaves;             /* ends */
    atomic_bool forks;              /* forks a child, which does nothing; reset when it has */
    atomic_bool resigns, campaigns; /* of an election; reset when it was asked */
    /* Set by the process. */
    atomic_bool ready;
    atomic_int child; /* 0: none. It outlives its parent; the teardown ends it */
    atomic_int asked, served, lost, warnings;
    atomic_llong valid_until_ns; /* it holds the lock until then; 0: it holds none */
    atomic_llong polls, passed_over, queued;
    /* Of an election: what was told, how often and when, and who. */
    atomic_int led, resigned, troubles, calmed, heard;
    atomic_llong led_at_ns, heard_at_ns;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1], heard_token[REDLOCK_TOKEN_SIZE_MAX + 1];
    bool heard_itself;
    char warning[512], failure[512];
};

struct crowd {
    atomic_int overlaps; /* times that two believed to hold the lock */
    atomic_int turns;
    struct turn {
        int member;
        char ticket[16 + 1];
    } turn[CROWD_TURNS];
    size_t count;
    struct member member[CROWD_MAX];
};

extern struct crowd *crowd;
extern struct servers crowd_servers;

/* Group setup and teardown: five plain servers. */
int crowd_five(void **state);
int crowd_end(void **state);
/* Setup and teardown of each test. The teardown kills who is left. */
int crowd_setup(void **state);
int crowd_teardown(void **state);
#define CROWD_TEST(function) TEST_WITH(function, crowd_setup, crowd_teardown)

/* Starts one more process that uses these servers, and waits until it is connected. */
struct member *crowd_start(struct servers *servers, const struct crowd_options *options);
/* SIGKILL, SIGSTOP, SIGCONT. The first two return when it has happened. */
void crowd_kill(struct member *member);
void crowd_stop(struct member *member);
void crowd_continue(struct member *member);
/* Ends all processes, which must end well, and checks that the lock was held by one at a time. */
void crowd_finish(void);
void crowd_leave(void);

bool crowd_holds(const struct member *member);
int crowd_served(void);
/* On at least `nodes` servers that run: `key` is a queue of this length, or so many channels are
 * subscribed to. */
bool crowd_is_long(struct servers *servers, const char *key, long long waiters, size_t nodes);
bool crowd_is_subscribed(struct servers *servers, long long channels, size_t nodes);
bool crowd_has_no_key(struct servers *servers);

/* Polls until the condition holds. Fails the test at the deadline, or if a process has ended. */
#define crowd_until(condition) crowd_until_within(CROWD_TIMEOUT_MS, condition)
#define crowd_until_within(timeout_ms, condition)                                                                      \
    do {                                                                                                               \
        const int64_t until_deadline_ms = support_now_ms() + (timeout_ms);                                             \
        while (!(condition)) {                                                                                         \
            crowd_look(#condition, until_deadline_ms);                                                                 \
        }                                                                                                              \
    } while (0)
void crowd_look(const char *condition, int64_t deadline_ms);

#endif
