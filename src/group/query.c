/* Requests without a lease: who holds a resource (inspect), and which nodes are ready (connect). */
#include "group/query.h"

#include <assert.h>
#include <stdlib.h>

#include "core/number.h"
#include "core/time.h"
#include "result/result.h"

struct redlock_query_vote {
    struct redlock_text *error;
    struct redlock_text *holder;
    int64_t holder_ttl_ms;
    int64_t waiters, waited_ms;
    int64_t latency_us;
    redlock_vote_kind kind;
};

struct redlock_query {
    struct redlock_oneshot oneshot; /* its requester is the first member */
    redlock_callback cb;
    void *data;
    struct redlock_round round;
    int64_t start_ns;
    int code;
    bool connects; /* else it inspects */
    bool done;     /* decided; the callback will run, or has run */
    bool callback_done;
    struct redlock_target *target;
    struct redlock_query_vote votes[]; /* node_count of them; then the target */
};

static struct redlock_query *query_new(struct redlock_group *group, bool connects, const char *resource,
                                       size_t key_size, redlock_callback cb, void *data) {
    const size_t size = sizeof(struct redlock_query) + group->node_count * sizeof(struct redlock_query_vote);
    struct redlock_query *query =
        redlock_requester_new(group, REDLOCK_REQUESTER_QUERY, size + redlock_target_size(key_size), size);
    if (!query) {
        return NULL;
    }
    query->target = redlock_group_target(group, resource, key_size, query->votes + group->node_count);
    for (unsigned i = 0; i < group->node_count; i++) {
        query->votes[i].latency_us = -1;
        query->votes[i].holder_ttl_ms = -1;
        query->votes[i].waiters = query->votes[i].waited_ms = -1;
    }
    redlock_round_start(&query->round, group->quorum, redlock_nodes_all(group->node_count));
    query->start_ns = redlock_group_now_ns(group);
    query->connects = connects;
    query->cb = cb;
    query->data = data;
    group->statistics.requests_pending++;
    return query;
}

static void query_free(struct redlock_group *group, struct redlock_requester *requester) {
    struct redlock_query *query = (struct redlock_query *)requester;
    assert(group->deleting || query->oneshot.requester.in_flight == 0);
    for (unsigned i = 0; i < group->node_count; i++) {
        redlock_text_drop(query->votes[i].error);
        redlock_text_drop(query->votes[i].holder);
    }
    redlock_requester_delist(group, requester);
    free(query);
}

static void finish(struct redlock_group *group, struct redlock_query *query, int code) {
    assert(!query->done);
    query->done = true;
    query->code = code;
    redlock_schedule_set(&group->schedule, &query->oneshot.requester.due, REDLOCK_NEVER_NS);
    redlock_requester_queue_oneshot(group, &query->oneshot);
}

/* An inspection waits for all votes: a user wants to see every node. Each has its own timeout. */
static void finish_if_answered(struct redlock_group *group, struct redlock_query *query) {
    if (!query->done && redlock_round_pending(&query->round) == 0) {
        finish(group, query, redlock_round_answered(&query->round) ? REDLOCK_OK : REDLOCK_ERR_NO_QUORUM);
    }
}

static void vote(const struct redlock_group *group, struct redlock_query *query, unsigned node, redlock_vote_kind kind,
                 struct redlock_text *error) {
    assert(node < group->node_count);
    struct redlock_query_vote *vote = &query->votes[node];
    if (redlock_round_vote(&query->round, REDLOCK_NODE(node), kind)) {
        vote->kind = kind;
        vote->error = redlock_text_keep(error);
        vote->latency_us = (redlock_group_now_ns(group) - query->start_ns) / 1000;
    }
}

static void refuse(struct redlock_group *group, struct redlock_query *query, redlock_nodes refused) {
    for (unsigned i = 0; i < group->node_count; i++) {
        if (refused & REDLOCK_NODE(i)) {
            vote(group, query, i, REDLOCK_VOTE_FAILED, group->env.refusal(group->env.ctx, i));
            query->votes[i].latency_us = -1;
        }
    }
}

static redlock_nodes ask(struct redlock_group *group, struct redlock_query *query, redlock_nodes nodes,
                         bool by_source) {
    struct redlock_message message = {.operation = REDLOCK_OP_INSPECT,
                                      .by_source = by_source,
                                      .target = query->target,
                                      .wait_suffix = group->wait_suffix,
                                      .now_ns = redlock_group_now_ns(group)};
    return redlock_requester_send(group, &query->oneshot.requester, nodes, &message);
}

int redlock_group_inspect(struct redlock_group *group, const char *resource, redlock_callback cb, void *data) {
    struct redlock_error_text *failure = redlock_group_failure(group);
    size_t key_size;
    int code = redlock_group_refuse(group, redlock_check_given(failure, "cb", cb != NULL));
    if (code == REDLOCK_OK) {
        code = redlock_group_check_resource(group, "resource", resource, &key_size);
    }
    if (code == REDLOCK_OK) {
        code = redlock_group_check_open(group);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    struct redlock_query *query = query_new(group, false, resource, key_size, cb, data);
    if (!query) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    const redlock_nodes all = redlock_nodes_all(group->node_count);
    refuse(group, query, all & ~ask(group, query, all, false));
    finish_if_answered(group, query);
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

static void free_if_over(struct redlock_group *group, struct redlock_query *query) {
    if (query->callback_done && query->oneshot.requester.in_flight == 0) {
        query_free(group, &query->oneshot.requester);
    }
}

static void query_answer(struct redlock_group *group, struct redlock_requester *requester, uint32_t round,
                         unsigned node, const struct redlock_answer *answer) {
    (void)round; /* a query has only one round */
    struct redlock_query *query = (struct redlock_query *)requester;
    if (!query->done && answer->no_script && redlock_requester_may_ask_by_source(requester, node) &&
        ask(group, query, REDLOCK_NODE(node), true)) {
        return;
    }
    if (!query->done) {
        vote(group, query, node, answer->vote, answer->text);
        if (answer->vote == REDLOCK_VOTE_GRANTED || answer->vote == REDLOCK_VOTE_DENIED) {
            query->votes[node].waiters = answer->waiters;
            query->votes[node].waited_ms = answer->waited_ms;
        }
        if (answer->vote == REDLOCK_VOTE_GRANTED) {
            query->votes[node].holder =
                redlock_text_new(REDLOCK_CAUSE_NONE, "%.*s", (int)answer->holder_size, answer->holder);
            query->votes[node].holder_ttl_ms = answer->holder_ttl_ms;
        }
        finish_if_answered(group, query);
    }
    free_if_over(group, query);
}

static void finish_connect(struct redlock_group *group, struct redlock_query *query) {
    assert(query->connects && !query->done);
    for (unsigned i = 0; i < group->node_count; i++) {
        if ((group->ready & REDLOCK_NODE(i)) && !group->env.is_too_far(group->env.ctx, i)) {
            vote(group, query, i, REDLOCK_VOTE_GRANTED, NULL);
        }
    }
    refuse(group, query, redlock_round_pending(&query->round));
    finish(group, query,
           redlock_round_outcome(&query->round) == REDLOCK_ROUND_WON ? REDLOCK_OK : REDLOCK_ERR_NO_QUORUM);
}

int redlock_group_connect(struct redlock_group *group, int64_t timeout_ms, redlock_callback cb, void *data) {
    struct redlock_error_text *failure = redlock_group_failure(group);
    int code = redlock_check_given(failure, "cb", cb != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_range(failure, "timeout_ms", timeout_ms, 0, REDLOCK_TIMEOUT_MS_MAX, "");
    }
    code = redlock_group_refuse(group, code);
    if (code == REDLOCK_OK) {
        code = redlock_group_check_open(group);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    struct redlock_query *query = query_new(group, true, "", group->key_prefix_size, cb, data);
    if (!query) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    if (redlock_group_all_first_tries_done(group)) {
        finish_connect(group, query);
    } else {
        redlock_schedule_set(&group->schedule, &query->oneshot.requester.due,
                             redlock_after_ms(query->start_ns, timeout_ms));
    }
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

static void query_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    (void)now_ns;
    struct redlock_query *query = (struct redlock_query *)requester;
    assert(query->connects); /* an inspection ends with its votes */
    finish_connect(group, query);
}

void redlock_queries_ready_changed(struct redlock_group *group) {
    if (!redlock_group_all_first_tries_done(group)) {
        return;
    }
    REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_QUERY) {
        struct redlock_query *query = (struct redlock_query *)requester;
        if (query->connects && !query->done) {
            finish_connect(group, query);
        }
    }
}

static void query_close(struct redlock_group *group, struct redlock_requester *requester) {
    struct redlock_query *query = (struct redlock_query *)requester;
    if (!query->done) {
        finish(group, query, REDLOCK_ERR_CLOSED);
    }
}

/* The lower median of what nodes could tell; -1 if fewer than `least` could. All should tell the
 * same, but a node may be late, or its clock may be wrong. */
static int64_t median(const int64_t *told, unsigned count, unsigned least) {
    assert(count <= REDLOCK_NODES_MAX);
    return count > 0 && count >= least ? told[(count - 1) / 2] : -1;
}

static void tell_of_queue(const struct redlock_group *group, const struct redlock_query *query,
                          struct redlock_result *result) {
    int64_t waiters[REDLOCK_NODES_MAX], waited_ms[REDLOCK_NODES_MAX];
    unsigned counts = 0, times = 0;
    for (unsigned i = 0; i < group->node_count; i++) {
        const struct redlock_query_vote *vote = &query->votes[i];
        if (vote->waiters >= 0) {
            redlock_number_insert(waiters, counts++, vote->waiters);
        }
        if (vote->waited_ms >= 0) {
            redlock_number_insert(waited_ms, times++, vote->waited_ms);
        }
    }
    result->waiters = median(waiters, counts, group->quorum);
    result->waited_ms = result->waiters > 0 ? median(waited_ms, times, 1) : -1;
}

static void run_callback(struct redlock_group *group, struct redlock_query *query) {
    assert(query->done && !query->callback_done);
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    struct redlock_result result = {.code = query->code,
                                    .of = query->connects ? REDLOCK_RESULT_CONNECT : REDLOCK_RESULT_INSPECT,
                                    .resource = redlock_target_key(query->target) + group->key_prefix_size,
                                    .attempts = 1,
                                    .quorum = group->quorum,
                                    .count = group->node_count,
                                    .votes = votes};
    for (unsigned i = 0; i < group->node_count; i++) {
        const struct redlock_query_vote *vote = &query->votes[i];
        votes[i] = (struct redlock_result_vote){.node = group->node_names[i],
                                                .text = vote->error,
                                                .holder = redlock_text_string(vote->holder),
                                                .latency_us = vote->latency_us,
                                                .holder_ttl_ms = vote->holder_ttl_ms,
                                                .kind = vote->kind};
    }
    tell_of_queue(group, query, &result);
    group->statistics.requests_pending--;
    query->cb(&result, query->data);
    query->callback_done = true;
}

static void query_callback(struct redlock_group *group, struct redlock_requester *requester) {
    run_callback(group, (struct redlock_query *)requester);
    free_if_over(group, (struct redlock_query *)requester);
}

const struct redlock_requester_ops redlock_query_ops = {
    .answer = query_answer, .due = query_due, .callback = query_callback, .close = query_close, .free = query_free};
