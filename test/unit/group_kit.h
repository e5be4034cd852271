/* What the tests of the group begin with: the env, what callbacks saw, and how to take a lease or
 * greet a node. */
#ifndef REDLOCK_TEST_GROUP_KIT_H
#define REDLOCK_TEST_GROUP_KIT_H

#include <string.h>

#include "core/time.h"
#include "fake_env.h"
#include "test.h"

/* The env of the test that runs. */
extern struct fake_env fake;

/* The group that a test begins with. */
struct group_setup {
    unsigned node_count;
    redlock_nodes refusing;
    redlock_manager_options config;
};

/* The keys of five_nodes begin with "locks:". */
extern const struct group_setup three_nodes, five_nodes;
/* Guards with a ttl_max_ms of 20000. */
extern const struct group_setup three_observed, five_observed, five_strict; /* the restart guard */
extern const struct group_setup three_clocks, five_clocks;                  /* the clock guard */

int open_group(void **state);
int close_group(void **state);

/* What callbacks saw. */
struct seen {
    unsigned count; /* results */
    int code;
    redlock_lease *lease;
    uint64_t attempts, passed_over;
    redlock_vote_kind votes[REDLOCK_NODES_MAX];
    int64_t latency_us[REDLOCK_NODES_MAX];
    char errors[REDLOCK_NODES_MAX][256]; /* of the votes */
    char message[1024];                  /* of the result */
    unsigned lost;                       /* losses */
    char reason[1024];                   /* of the loss */
};

#define SEEN_TEST(function, open, setup)                                                                               \
    TEST_HAS(function, open, close_group, (void *)(uintptr_t) & (setup), (state, (struct seen){0}),                    \
             UNUSED void **state, UNUSED struct seen seen)
#define GROUP_TEST(function, setup) SEEN_TEST(function, open_group, setup)

/* So many results, and the last code. */
#define assert_seen(seen, wanted_count, wanted_code)                                                                   \
    do {                                                                                                               \
        assert_int_equal((seen).count, wanted_count);                                                                  \
        assert_is((seen).code, wanted_code);                                                                           \
    } while (0)

void see(const redlock_result *result, void *data);
void see_lost(redlock_lease *lease, const char *reason, void *data);
void count_drained(void *count);

redlock_statistics statistics(void);
void assert_owed(uint64_t owed, uint64_t dropped); /* releases */

redlock_acquire_options default_options(void);
/* The default, with on_lost set to see_lost(). */
redlock_acquire_options watched_options(struct seen *seen);

/* Asks for the lock "r". */
void acquire(const redlock_acquire_options *options, struct seen *seen);
/* Asks for the lock "r", which all nodes grant. */
redlock_lease *take(const redlock_acquire_options *options, struct seen *seen);
/* Releases the lease; all nodes grant that and whatever else waits. */
void give_back(redlock_lease *lease);
/* Asks for the lock "r" with a fencing token, and says which token it proposes. */
uint64_t acquire_fenced(struct seen *seen);

/* Nodes `first` to `last` grant the acquire, at the right time of day. */
void grant(unsigned first, unsigned last);
void grant_with_clock(unsigned node, enum redlock_operation operation, struct redlock_clock_sample clock);
/* The node accepts the fencing token. */
void accept_fence(unsigned node, enum redlock_operation operation);

/* A server's clock that is this far ahead of ours, read without delay. */
struct redlock_clock_sample reading(int64_t ahead_ms);
/* The node is ready, after a handshake in which it said this. */
void greet(unsigned node, const char *run_id, int64_t uptime_s, struct redlock_clock_sample clock);
/* All nodes, with the run ids "a", "b", "c", …, up for 100,000 s, at the right time of day. */
void greet_all(void);

#endif
