/* What the tests of elections for threads that block begin with. */
#ifndef TEST_INTEGRATION_BLOCKING_ELECTION_KIT_H
#define TEST_INTEGRATION_BLOCKING_ELECTION_KIT_H

#include "blocking_kit.h"

#define NAME    "leader"
#define WAIT_MS 30000 /* for news that must come */

redlock_client_election *elect(redlock_client *client, bool campaign);
redlock_election_event read_event(redlock_client_election *election, int64_t timeout_ms);
/* The next event that is not news of the leader or of trouble. It must be of this kind. */
redlock_election_event next_change(redlock_client_election *election, redlock_election_event_kind kind);
/* The next news of the leader: who it is. */
redlock_election_event next_leader(redlock_client_election *election);
/* Reads until it leads. Returns the term. */
uint64_t lead(redlock_client_election *election);

#endif
