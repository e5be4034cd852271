/* The parts that the tests of an observer's knowledge share: five nodes, and a clock. */
#ifndef LEADER_KIT_H
#define LEADER_KIT_H

#include <stdlib.h>
#include <string.h>

#include "core/leader.h"
#include "core/time.h"
#include "test.h"

#define MS    REDLOCK_NS_PER_MS
#define ALICE "00000000000000aa0123456789abcdef0123456789abcdef"
#define BOB   "00000000000000bb0123456789abcdef0123456789abcdef"
#define ALL   31u

extern struct redlock_leader_node nodes[REDLOCK_NODES_MAX];
extern struct redlock_leadership it;
extern int64_t now_ns;

void begin(unsigned node_count);
int setup(void **state);
void answer(unsigned node, const char *token, int64_t ttl_ms);
void fail_to_answer(unsigned node);
void hint(unsigned node);
/* It announces a change. So it is asked, and nobody else, and says so. */
void announce(unsigned node, const char *token, int64_t ttl_ms);
void hear(redlock_nodes which, bool heard);
/* These nodes are asked now; nobody else is. */
void assert_asked(redlock_nodes which);
void assert_news(const char *token);
void assert_no_news(void);
/* The next time is in this range, from now. Then it is that time. */
void pass_to_next(int64_t least_ms, int64_t most_ms);
/* All five have answered this, and it is told. */
void know(const char *token, int64_t ttl_ms);

#endif
