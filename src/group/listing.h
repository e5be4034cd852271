/* The request that finds all locks of the nodes. */
#ifndef REDLOCK_GROUP_LISTING_H
#define REDLOCK_GROUP_LISTING_H

#include <redlock/list.h>

#include "group/group.h"

/* See redlock_list(). */
int redlock_group_list(struct redlock_group *group, const redlock_list_options *options, redlock_list_callback each,
                       redlock_callback done, void *data);

/* Ends the listing with this `data` as if its callback had stopped it. Nothing, if it has ended. */
void redlock_listing_cancel(struct redlock_group *group, const void *data);

extern const struct redlock_requester_ops redlock_listing_ops;

#endif
