/* Requests without a lease: who holds a resource (inspect), and which nodes are ready (connect). */
#ifndef REDLOCK_GROUP_QUERY_H
#define REDLOCK_GROUP_QUERY_H

#include "group/group.h"

/* See redlock_inspect() and redlock_manager_connect(). */
int redlock_group_inspect(struct redlock_group *group, const char *resource, redlock_callback cb, void *data);
int redlock_group_connect(struct redlock_group *group, int64_t timeout_ms, redlock_callback cb, void *data);

void redlock_queries_ready_changed(struct redlock_group *group);

extern const struct redlock_requester_ops redlock_query_ops;

#endif
