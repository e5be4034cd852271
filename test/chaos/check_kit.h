/* Runs one check alone and compares what it finds. */
#ifndef CHAOS_CHECK_KIT_H
#define CHAOS_CHECK_KIT_H

#include "checks/check_parts.h"
#include "kit.h"
#include "test.h"

#define MS INT64_C(1000)
#define S  INT64_C(1000000)

/* Of the last check. */
extern struct chaos_verdict verdict;

/* Runs one check with a slack of 100 ms. Expects `count` violations of this kind and none of any
 * other. */
void expect(struct kit *kit, void (*check)(struct chaos_case *), enum chaos_violation_kind kind, size_t count);
/* The same of the whole history, which ends after 9 s. */
void expect_at_end(struct kit *kit, void (*check)(struct chaos_case *), enum chaos_violation_kind kind, size_t count);
/* Expects this part in the violation's text. */
void expect_text(size_t index, const char *part);

/* For each test: a kit of 5 nodes, 3 clients, 2 resources. */
int set_up(void **state);
int tear_down(void **state);
#define FRESH_TEST(name) TEST_HAS(name, set_up, tear_down, NULL, (*state), UNUSED struct kit *kit)

#endif
