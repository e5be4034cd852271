/* The request that finds all locks of the nodes. */
#ifndef REDLOCK_GROUP_LISTING_H
#define REDLOCK_GROUP_LISTING_H

#include <redlock/list.h>

#include "group/group.h"

struct redlock_listing;

/* See redlock_list(). */
int redlock_group_list(struct redlock_group *group, const redlock_list_options *options, redlock_list_callback each,
                       redlock_callback done, void *data);

/* Ends the listing with this `data` as if its callback had stopped it. Nothing, if it has ended. */
void redlock_listing_cancel(struct redlock_group *group, const void *data);
void redlock_listing_answer(struct redlock_listing *listing, unsigned node, const struct redlock_answer *answer);
void redlock_listing_run_callbacks(struct redlock_listing *listing);
/* All listings end: with their callbacks, or without any. */
void redlock_listings_close(struct redlock_group *group);
void redlock_listings_free(struct redlock_group *group);

#endif
