/* The elections of a manager: candidates over the group's acquires, leases and observers. */
#ifndef REDLOCK_ELECTION_CAMPAIGN_H
#define REDLOCK_ELECTION_CAMPAIGN_H

#include <stdatomic.h>

#include <redlock/election.h>

#include "base/list.h"
#include "group/entry.h"

struct redlock_elections {
    struct redlock_group *group;
    struct redlock_list list;
};

/* How long an election leads, for any thread. The term rises before the next lease can have a
 * deadline. */
struct redlock_standing {
    _Atomic uint64_t term;
    _Atomic int64_t held_until_ns;
};

/* See redlock_election_validity_ms(). */
int64_t redlock_standing_validity_ms(const struct redlock_standing *standing, uint64_t term, int64_t now_ns);

void redlock_elections_init(struct redlock_elections *elections, struct redlock_group *group);

/* See redlock_elect(). The election keeps its standing in `standing`, which outlives it; NULL: in
 * memory of its own. */
int redlock_elections_add(struct redlock_elections *elections, const char *name,
                          const redlock_election_options *options, redlock_election_callback cb, void *data,
                          struct redlock_standing *standing, redlock_election **election);

/* Whether a call to resign has nothing to do. */
bool redlock_election_is_out(const redlock_election *election);

/* The group closes; call it before redlock_group_drain(). Nothing is told any more... */
void redlock_elections_close(struct redlock_elections *elections);
/* ...until the close is done: then each tells its end. Call it while the group still exists. */
void redlock_elections_closed(struct redlock_elections *elections);
/* Frees all without a word; call it before redlock_group_delete(). */
void redlock_elections_free(struct redlock_elections *elections);

#endif
