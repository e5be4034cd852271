/* The elections of a manager: candidates over the group's acquires, leases and observers. */
#ifndef REDLOCK_ELECTION_ELECTION_H
#define REDLOCK_ELECTION_ELECTION_H

#include <redlock/election.h>

#include "group/group.h"

/* Zero with a group. */
struct redlock_elections {
    struct redlock_group *group;
    struct redlock_election *first;
};

/* See redlock_elect(). */
int redlock_elections_add(struct redlock_elections *elections, const char *name,
                          const redlock_election_options *options, redlock_election_callback cb, void *data,
                          redlock_election **election);

/* Whether a call to resign has nothing to do. */
bool redlock_election_is_out(const redlock_election *election);

/* The group closes; call it before redlock_group_drain(). Nothing is told any more... */
void redlock_elections_close(struct redlock_elections *elections);
/* ...until the close is done: then each tells its end. Call it while the group still exists. */
void redlock_elections_closed(struct redlock_elections *elections);
/* Frees all without a word; call it before redlock_group_delete(). */
void redlock_elections_free(struct redlock_elections *elections);

#endif
