/* The public calls on locks, for one group. */
#ifndef REDLOCK_GROUP_REQUESTS_H
#define REDLOCK_GROUP_REQUESTS_H

#include "group/handle.h"

/* See redlock_acquire() and redlock_adopt(). */
int redlock_group_acquire(struct redlock_group *group, const char *resource, const redlock_acquire_options *options,
                          redlock_request **request, redlock_callback cb, void *data);
/* The same for an election: it begins in line, and observers are told of all that it changes. */
int redlock_group_campaign(struct redlock_group *group, const char *resource, const redlock_acquire_options *options,
                           redlock_request **request, redlock_callback cb, void *data);
int redlock_group_adopt(struct redlock_group *group, const char *resource, const char *token,
                        const redlock_acquire_options *options, redlock_lease **adopted);
/* The checks of options that all of these make. Fills in `options`. OK or ERR_INVALID, which is
 * logged. */
int redlock_group_check_options(struct redlock_group *group, const redlock_acquire_options *given,
                                redlock_acquire_options *options);

/* The group closes: a pending acquire gets CLOSED; a lease is released, and its handle ends. */
void redlock_requests_close(struct redlock_lease *lease);

#endif
