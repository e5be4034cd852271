/* Requests without a lease: who holds a resource (inspect), and which nodes are ready (connect). */
#ifndef REDLOCK_GROUP_QUERY_H
#define REDLOCK_GROUP_QUERY_H

#include "group/group.h"

struct redlock_query;

/* See redlock_inspect() and redlock_manager_connect(). */
int redlock_group_inspect(struct redlock_group *group, const char *resource, redlock_callback cb, void *data);
int redlock_group_connect(struct redlock_group *group, int64_t timeout_ms, redlock_callback cb, void *data);

void redlock_query_answer(struct redlock_group *group, struct redlock_query *query, uint32_t round, unsigned node,
                          const struct redlock_answer *answer);
void redlock_query_due(struct redlock_group *group, struct redlock_query *query);
void redlock_query_close(struct redlock_group *group, struct redlock_query *query);
void redlock_queries_ready_changed(struct redlock_group *group);
void redlock_query_run_callback(struct redlock_group *group, struct redlock_query *query);
void redlock_query_free(struct redlock_group *group, struct redlock_query *query);

#endif
