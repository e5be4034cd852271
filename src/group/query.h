/* A request of all nodes that ends with one result, and is no lease: who holds a resource
 * (inspect), which nodes are ready (connect). A listing is one, too. */
#ifndef REDLOCK_GROUP_QUERY_H
#define REDLOCK_GROUP_QUERY_H

#include "group/group.h"
#include "result/result.h"

struct redlock_query {
    struct redlock_oneshot oneshot; /* its requester is the first member */
    struct redlock_group *group;
    redlock_callback cb;
    void *data;
    int64_t start_ns;
    struct redlock_round round;
    struct redlock_result_vote *votes; /* one of each node; owns their texts */
    enum redlock_result_of of;
    int code;
    bool decided;      /* its result will be told, or has been */
    bool in_callbacks; /* they see by themselves that it is decided */
    bool over;         /* the result has been told */
};

/* All but the requester, which is in its list already. */
void redlock_query_start(struct redlock_query *query, struct redlock_group *group, enum redlock_result_of of,
                         struct redlock_result_vote *votes, redlock_callback cb, void *data);
/* Its callbacks will run, once. */
void redlock_query_queue(struct redlock_query *query);
/* It ends with this code, unless it has ended. */
void redlock_query_decide(struct redlock_query *query, int code);
/* The first vote of a node counts. The last one decides. */
void redlock_query_vote(struct redlock_query *query, unsigned node, redlock_vote_kind kind, struct redlock_text *text);
/* The nodes would not take the request. */
void redlock_query_refused(struct redlock_query *query, redlock_nodes nodes);
/* Notes how long its answer took. */
void redlock_query_answered(struct redlock_query *query, unsigned node);
/* The result of one that is decided. Borrows the votes. */
struct redlock_result redlock_query_result(const struct redlock_query *query);
/* Tells it. */
void redlock_query_tell(struct redlock_query *query, const struct redlock_result *result);
/* Of the requester's kind: what both do. */
void redlock_query_close(struct redlock_group *group, struct redlock_requester *requester);
void redlock_query_free(struct redlock_query *query);

static inline bool redlock_query_is_over(const struct redlock_query *query) {
    return query->over && query->oneshot.requester.in_flight == 0;
}

/* A node is ready, or its first try is over. */
void redlock_queries_ready_changed(struct redlock_group *group);

#endif
