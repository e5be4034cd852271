/* What the tests of waiting in queues begin with. */
#ifndef REDLOCK_TEST_QUEUE_KIT_H
#define REDLOCK_TEST_QUEUE_KIT_H

#include "group_kit.h"

#define EARLIER "0000000000000001aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" /* tokens of other waiters */
#define LATER   "00ffffffffffffffaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

redlock_acquire_options patient_options(void);
/* Asks for the lock "r", and waits for it. */
redlock_request *wait_for_it(struct seen *seen);
/* Somebody holds the lock "r". After a first try, the acquire has a place on all nodes. */
redlock_request *queue_up(struct seen *seen);
/* The last WAIT that this node got. */
const struct fake_sent *last_wait(unsigned node);
/* Nodes `first` to `last` push a grant of it. */
void push(unsigned first, unsigned last);
/* The next WAIT to all nodes, which say "queued". */
void refresh(void);
/* The nodes answer the first try, if they have not. */
void answer_late_tries(void);
void listens(unsigned node, enum redlock_listening listening);
/* Before anybody waits: each node can tell of a grant. */
void all_listen(void);
void release_quietly(redlock_lease *lease, bool handed_over);
/* Node 3 is asked to take back exactly this. */
void assert_given_back(const struct fake_sent *wait);

#endif
