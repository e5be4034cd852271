/* Requests without a lease: who holds a resource (inspect), and which nodes are ready (connect). */
#include "group/query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "core/time.h"
#include "group/names.h"
#include "group/requests.h"

void redlock_query_start(struct redlock_query *query, struct redlock_group *group, enum redlock_result_of of,
                         struct redlock_result_vote *votes, redlock_callback cb, void *data) {
    assert(votes && cb);
    query->group = group;
    query->cb = cb;
    query->data = data;
    query->start_ns = redlock_group_now_ns(group);
    query->votes = votes;
    query->of = of;
    for (unsigned i = 0; i < group->node_count; i++) {
        votes[i] = (struct redlock_result_vote){.latency_us = -1, .kind = REDLOCK_VOTE_PENDING};
    }
    redlock_round_start(&query->round, group->quorum, redlock_nodes_all(group->node_count));
    group->statistics.requests_pending++;
}

void redlock_query_queue(struct redlock_query *query) {
    assert(!query->over);
    if (!redlock_list_is_in(&query->oneshot.done) && !query->in_callbacks) {
        redlock_requester_queue_oneshot(query->group, &query->oneshot);
    }
}

void redlock_query_decide(struct redlock_query *query, int code) {
    if (!query->decided) {
        query->decided = true;
        query->code = code;
        redlock_schedule_set(&query->group->schedule, &query->oneshot.requester.due, REDLOCK_NEVER_NS);
        redlock_query_queue(query);
    }
}

/* An inspection waits for all votes, too: a user wants to see every node. Each has its own
 * timeout. */
void redlock_query_vote(struct redlock_query *query, unsigned node, redlock_vote_kind kind, struct redlock_text *text) {
    assert(node < query->group->node_count);
    const struct redlock_round *round = &query->round;
    if (redlock_round_vote(&query->round, REDLOCK_NODE(node), kind)) {
        query->votes[node].kind = (uint8_t)kind;
        query->votes[node].text = redlock_text_keep(text);
    }
    if (redlock_round_pending(round) == 0) {
        const bool is_ok = query->of == REDLOCK_RESULT_INSPECT ? redlock_round_answered(round)
                                                               : redlock_round_outcome(round) == REDLOCK_ROUND_WON;
        redlock_query_decide(query, is_ok ? REDLOCK_OK : REDLOCK_ERR_NO_QUORUM);
    }
}

void redlock_query_refused(struct redlock_query *query, redlock_nodes nodes) {
    const struct redlock_env *env = &query->group->env;
    for (; nodes != 0; nodes &= nodes - 1) {
        const unsigned node = redlock_nodes_first(nodes);
        redlock_query_vote(query, node, REDLOCK_VOTE_FAILED, env->refusal(env->ctx, node));
    }
}

void redlock_query_answered(struct redlock_query *query, unsigned node) {
    assert(node < query->group->node_count);
    const int64_t latency_us = (redlock_group_now_ns(query->group) - query->start_ns) / 1000;
    query->votes[node].latency_us = latency_us < INT32_MAX ? (int32_t)latency_us : INT32_MAX;
}

struct redlock_result redlock_query_result(const struct redlock_query *query) {
    assert(query->decided && !query->over);
    return (struct redlock_result){.code = query->code,
                                   .of = query->of,
                                   .resource = "",
                                   .attempts = 1,
                                   .quorum = query->group->quorum,
                                   .count = query->group->node_count,
                                   .nodes = query->group->node_names,
                                   .votes = query->votes};
}

void redlock_query_tell(struct redlock_query *query, const struct redlock_result *result) {
    assert(query->decided && !query->over);
    query->group->statistics.requests_pending--;
    query->cb(result, query->data);
    query->over = true;
}

void redlock_query_close(struct redlock_group *group, struct redlock_requester *requester) {
    assert(group->closing);
    redlock_query_decide((struct redlock_query *)requester, REDLOCK_ERR_CLOSED);
}

void redlock_query_free(struct redlock_query *query) {
    struct redlock_group *group = query->group;
    assert(group->deleting || query->oneshot.requester.in_flight == 0);
    for (unsigned i = 0; i < group->node_count; i++) {
        redlock_text_drop(query->votes[i].text);
    }
    redlock_requester_delist(group, &query->oneshot.requester);
    free(query);
}

/* An inspection, or a connect, which asks nobody. */
struct sight {
    struct redlock_text *holder;
    int64_t holder_ttl_ms;
    int64_t waiters, waited_ms, readers;
};

struct inspection {
    struct redlock_query query; /* first member */
    struct redlock_target *target;
    struct redlock_names_said said[REDLOCK_NODES_MAX];
    struct sight sights[]; /* one of each node; then the votes, then the target */
};

static struct inspection *inspection_new(struct redlock_group *group, enum redlock_result_of of, const char *resource,
                                         size_t key_size, redlock_callback cb, void *data) {
    const unsigned count = group->node_count;
    const size_t size = sizeof(struct inspection) + count * (sizeof(struct sight) + sizeof(struct redlock_result_vote));
    struct inspection *inspection =
        redlock_requester_new(group, REDLOCK_REQUESTER_QUERY, size + redlock_target_size(key_size), size);
    if (!inspection) {
        return NULL;
    }
    struct redlock_result_vote *votes = (struct redlock_result_vote *)(void *)(inspection->sights + count);
    redlock_query_start(&inspection->query, group, of, votes, cb, data);
    inspection->target = redlock_group_target(group, resource, key_size, votes + count);
    for (unsigned i = 0; i < count; i++) {
        inspection->sights[i] = (struct sight){.holder_ttl_ms = -1, .waiters = -1, .waited_ms = -1, .readers = -1};
    }
    return inspection;
}

static void query_free(struct redlock_group *group, struct redlock_requester *requester) {
    struct inspection *inspection = (struct inspection *)requester;
    for (unsigned i = 0; i < group->node_count; i++) {
        redlock_text_drop(inspection->sights[i].holder);
        free(inspection->said[i].names);
    }
    redlock_query_free(&inspection->query);
}

static void free_if_over(struct inspection *inspection) {
    if (redlock_query_is_over(&inspection->query)) {
        query_free(inspection->query.group, &inspection->query.oneshot.requester);
    }
}

static redlock_nodes ask(struct inspection *inspection, redlock_nodes nodes, bool by_source) {
    struct redlock_group *group = inspection->query.group;
    struct redlock_message message = {.operation = REDLOCK_OP_INSPECT,
                                      .by_source = by_source,
                                      .target = inspection->target,
                                      .wait_suffix = group->wait_suffix,
                                      .now_ns = redlock_group_now_ns(group)};
    return redlock_requester_send(group, &inspection->query.oneshot.requester, nodes, &message);
}

int redlock_group_inspect(struct redlock_group *group, const char *resource, redlock_callback cb, void *data) {
    size_t key_size = 0;
    int code = redlock_check_given(&group->failure, "cb", cb != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_group_check_resource(group, "resource", resource, &key_size);
    }
    code = redlock_group_admit(group, code);
    if (code != REDLOCK_OK) {
        return code;
    }
    struct inspection *inspection = inspection_new(group, REDLOCK_RESULT_INSPECT, resource, key_size, cb, data);
    if (!inspection) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    const redlock_nodes all = redlock_nodes_all(group->node_count);
    redlock_query_refused(&inspection->query, all & ~ask(inspection, all, false));
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

/* Without memory, the node names nobody. */
static void keep_names(struct redlock_names_said *said, const struct redlock_answer *answer) {
    said->names = answer->first_size > 0 ? malloc(answer->first_size) : NULL;
    if (said->names) {
        said->size = answer->first_size;
        memcpy(said->names, answer->first, answer->first_size);
    }
}

static void query_answer(struct redlock_group *group, struct redlock_requester *requester, unsigned node,
                         const struct redlock_answer *answer) {
    (void)group;
    struct inspection *inspection = (struct inspection *)requester;
    struct redlock_query *query = &inspection->query;
    struct sight *sight = &inspection->sights[node];
    assert(query->of == REDLOCK_RESULT_INSPECT); /* a connect asks nobody */
    if (!query->decided && answer->again && redlock_requester_may_ask_by_source(requester, node) &&
        ask(inspection, REDLOCK_NODE(node), true)) {
        return;
    }
    if (!query->decided) {
        redlock_query_answered(query, node);
        redlock_query_vote(query, node, answer->vote, answer->text);
        if (answer->vote == REDLOCK_VOTE_GRANTED || answer->vote == REDLOCK_VOTE_DENIED) {
            sight->waiters = answer->waiters;
            sight->waited_ms = answer->waited_ms;
            sight->readers = answer->vote == REDLOCK_VOTE_GRANTED ? answer->readers : 0;
            keep_names(&inspection->said[node], answer);
        }
        if (answer->vote == REDLOCK_VOTE_GRANTED) {
            assert(!sight->holder);
            sight->holder = redlock_text_new(REDLOCK_CAUSE_NONE, "%.*s", (int)answer->holder_size, answer->holder);
            sight->holder_ttl_ms = answer->holder_ttl_ms;
        }
    }
    free_if_over(inspection);
}

static void finish_connect(struct redlock_query *query) {
    const struct redlock_group *group = query->group;
    assert(query->of == REDLOCK_RESULT_CONNECT && !query->decided);
    for (unsigned i = 0; i < group->node_count; i++) {
        if ((group->ready & REDLOCK_NODE(i)) && !group->env.is_too_far(group->env.ctx, i)) {
            redlock_query_answered(query, i);
            redlock_query_vote(query, i, REDLOCK_VOTE_GRANTED, NULL);
        }
    }
    redlock_query_refused(query, redlock_round_pending(&query->round));
    assert(query->decided);
}

int redlock_group_connect(struct redlock_group *group, int64_t timeout_ms, redlock_callback cb, void *data) {
    int code = redlock_check_given(&group->failure, "cb", cb != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_range(&group->failure, "timeout_ms", timeout_ms, 0, REDLOCK_TIMEOUT_MS_MAX, "");
    }
    code = redlock_group_admit(group, code);
    if (code != REDLOCK_OK) {
        return code;
    }
    struct inspection *inspection = inspection_new(group, REDLOCK_RESULT_CONNECT, "", group->key_prefix_size, cb, data);
    if (!inspection) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    struct redlock_query *query = &inspection->query;
    if (redlock_group_all_first_tries_done(group)) {
        finish_connect(query);
    } else {
        redlock_schedule_set(&group->schedule, &query->oneshot.requester.due,
                             redlock_after_ms(query->start_ns, timeout_ms));
    }
    redlock_group_rearm(group);
    return REDLOCK_OK;
}

/* A connect has waited long enough. An inspection ends with its votes. */
static void query_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    (void)group, (void)now_ns;
    finish_connect((struct redlock_query *)requester);
}

void redlock_queries_ready_changed(struct redlock_group *group) {
    if (!redlock_group_all_first_tries_done(group)) {
        return;
    }
    REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_QUERY) {
        struct redlock_query *query = (struct redlock_query *)requester;
        if (query->of == REDLOCK_RESULT_CONNECT && !query->decided) {
            finish_connect(query);
        }
    }
}

/* The lower median of what nodes could tell; -1 if fewer than `least` could. All should tell the
 * same, but a node may be late, or its clock may be wrong. */
static int64_t median(const int64_t *told, unsigned count, unsigned least) {
    assert(count <= REDLOCK_NODES_MAX);
    return count > 0 && count >= least ? told[(count - 1) / 2] : -1;
}

static void tell_of_others(const struct redlock_group *group, const struct inspection *inspection,
                           struct redlock_result_others *others) {
    int64_t waiters[REDLOCK_NODES_MAX], waited_ms[REDLOCK_NODES_MAX], readers[REDLOCK_NODES_MAX];
    unsigned counts = 0, times = 0, answers = 0;
    for (unsigned i = 0; i < group->node_count; i++) {
        const struct sight *sight = &inspection->sights[i];
        if (sight->waiters >= 0) {
            redlock_number_insert(waiters, counts++, sight->waiters);
        }
        if (sight->waited_ms >= 0) {
            redlock_number_insert(waited_ms, times++, sight->waited_ms);
        }
        if (sight->readers >= 0) {
            redlock_number_insert(readers, answers++, sight->readers);
        }
    }
    others->waiters = median(waiters, counts, group->quorum);
    others->waited_ms = others->waiters > 0 ? median(waited_ms, times, 1) : -1;
    others->readers = median(readers, answers, group->quorum);
}

static void query_callback(struct redlock_group *group, struct redlock_requester *requester) {
    struct inspection *inspection = (struct inspection *)requester;
    struct redlock_result_holder holders[REDLOCK_NODES_MAX];
    struct redlock_result result = redlock_query_result(&inspection->query);
    for (unsigned i = 0; i < group->node_count; i++) {
        const struct sight *sight = &inspection->sights[i];
        holders[i] = (struct redlock_result_holder){.token = redlock_text_string(sight->holder),
                                                    .ttl_ms = sight->holder_ttl_ms,
                                                    .readers = sight->readers > 0 ? sight->readers : 0};
    }
    result.holders = holders;
    result.resource = redlock_target_key(inspection->target) + group->key_prefix_size;
    struct redlock_result_others others = {.named = NULL};
    result.others = &others;
    tell_of_others(group, inspection, &others);
    redlock_names_merge(inspection->said, group->node_count, group->quorum, &others);
    redlock_query_tell(&inspection->query, &result);
    free(others.named);
    free_if_over(inspection);
}

const struct redlock_requester_ops redlock_query_ops = {.answer = query_answer,
                                                        .due = query_due,
                                                        .callback = query_callback,
                                                        .close = redlock_query_close,
                                                        .free = query_free};
