/* The public calls on a group. Each checks its arguments and makes a request. */
#ifndef REDLOCK_GROUP_REQUESTS_H
#define REDLOCK_GROUP_REQUESTS_H

#include <redlock/election.h>
#include <redlock/list.h>

#include "core/lease_state.h"
#include "group/group.h"

/* See redlock_acquire() and redlock_adopt(). */
int redlock_group_acquire(struct redlock_group *group, const char *resource, const redlock_acquire_options *options,
                          redlock_request **request, redlock_callback cb, void *data);
/* The same for an election: it begins in line, and observers are told of all that it changes. */
int redlock_group_campaign(struct redlock_group *group, const char *resource, const redlock_acquire_options *options,
                           redlock_request **request, redlock_callback cb, void *data);
/* The same for an item of a bundle that came at `arrival_us`. If it waits, it has waited since
 * then, and begins in line. Until it settles, its end has no lock delay. */
int redlock_group_acquire_item(struct redlock_group *group, const char *resource,
                               const redlock_acquire_options *options, uint64_t arrival_us, redlock_request **request,
                               redlock_callback cb, void *data);
int redlock_group_adopt(struct redlock_group *group, const char *resource, const char *token,
                        const redlock_acquire_options *options, redlock_lease **adopted);
/* Of one resource; see redlock_request_cancel(), redlock_extend() and the like. */
void redlock_group_cancel(struct redlock_lease *lease);
int redlock_group_extend(struct redlock_lease *lease, int64_t ttl_ms, redlock_callback cb, void *data);
int redlock_group_downgrade(struct redlock_lease *lease, redlock_callback cb, void *data);
/* The two halves of an extension, at one time; the type is EXTEND or DOWNGRADE. */
int redlock_group_check_extend(const struct redlock_lease *lease, int64_t ttl_ms, int64_t now_ns);
void redlock_group_begin_extend(struct redlock_lease *lease, enum redlock_event_type type, int64_t ttl_ms,
                                int64_t now_ns, redlock_callback cb, void *data);
int redlock_group_release(struct redlock_lease *lease, redlock_callback cb, void *data);
void redlock_group_forget(struct redlock_lease *lease);
/* The checks of options that all of these make. Fills in `options`. OK or ERR_INVALID. */
int redlock_group_check_options(struct redlock_group *group, const redlock_acquire_options *given,
                                redlock_acquire_options *options);

/* See redlock_inspect() and redlock_manager_connect(). */
int redlock_group_inspect(struct redlock_group *group, const char *resource, redlock_callback cb, void *data);
int redlock_group_connect(struct redlock_group *group, int64_t timeout_ms, redlock_callback cb, void *data);

/* See redlock_list(). */
int redlock_group_list(struct redlock_group *group, const redlock_list_options *options, redlock_list_callback each,
                       redlock_callback done, void *data);
/* Ends the listing with this `data` as if its callback had stopped it. Nothing, if it has ended. */
void redlock_group_list_cancel(struct redlock_group *group, const void *data);

/* See redlock_observe(). */
int redlock_group_observe(struct redlock_group *group, const char *resource, redlock_leader_callback cb, void *data,
                          redlock_observer **observer);

#endif
