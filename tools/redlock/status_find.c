/* What status finds at the nodes: their states, and who holds what. */
#include "status.h"

#include <stdlib.h>
#include <string.h>

#include "nodes.h"
#include "report.h"
#include "values/values.h"

#define SLOTS_AT_ONCE 64

static bool is_undecided(const redlock_node_info *info) {
    return info->state == REDLOCK_NODE_READY && !info->listens && !info->queue_refused;
}

/* Or a signal came. */
static bool all_listen_or_refuse(const void *data) {
    const struct tool_session *session = data;
    bool all = true;
    for (size_t i = 0; i < redlock_manager_node_count(session->manager); i++) {
        redlock_node_info info = tool_session_node(session, i);
        all = all && !is_undecided(&info);
    }
    return all || session->stop_signal != 0;
}

/* Waits until the nodes that are ready listen or refuse to. All connections together have the
 * connect timeout. */
static void await_listening(struct tool_session *session) {
    const int64_t rest_ms = session->options->manager.connect_timeout_ms - tool_session_age_ms(session);
    if (rest_ms > 0) {
        tool_session_rest(session, rest_ms, all_listen_or_refuse, session);
    }
}

static void note_late(struct tool_findings *findings, const redlock_result *result) {
    for (size_t i = 0; i < findings->nodes; i++) {
        findings->late |= tool_vote(result, i).kind == REDLOCK_VOTE_UNKNOWN;
    }
}

struct slot_query {
    struct tool_slot *slot;
    size_t *pending;
};

static void note_slot(const redlock_result *result, void *data) {
    struct slot_query *query = data;
    query->slot->result = redlock_result_copy(result);
    --*query->pending;
}

/* Asks for some slots at once: a node that hangs costs its timeout once for all of them. */
static int inspect_some(struct tool_session *session, struct tool_lock *lock, size_t first) {
    struct slot_query queries[SLOTS_AT_ONCE];
    size_t pending = 0;
    int code = REDLOCK_OK;
    for (size_t i = 0; i < SLOTS_AT_ONCE && first + i < lock->limit && code == REDLOCK_OK; i++) {
        const char *name = TOOL_TEXT(REDLOCK_RESOURCE_SIZE_MAX + 8, "%s#%zu", lock->resource, first + i);
        queries[i] = (struct slot_query){.slot = &lock->slots[first + i], .pending = &pending};
        code = redlock_inspect(session->manager, name, note_slot, &queries[i]);
        pending += code == REDLOCK_OK;
    }
    while (pending > 0) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    return code;
}

static int inspect_slots(struct tool_session *session, struct tool_findings *findings, struct tool_lock *lock) {
    int code = REDLOCK_OK;
    lock->limit = session->options->limit;
    lock->slots = calloc(lock->limit, sizeof *lock->slots);
    if (lock->slots == NULL) {
        return tool_report_code(session, REDLOCK_ERR_NO_MEMORY);
    }
    for (size_t first = 0; first < lock->limit && code == REDLOCK_OK && session->stop_signal == 0;
         first += SLOTS_AT_ONCE) {
        code = inspect_some(session, lock, first);
    }
    for (size_t i = 0; i < lock->limit; i++) {
        struct tool_slot *slot = &lock->slots[i];
        slot->holders = tool_holders_of(slot->result, findings->nodes, findings->quorum);
        lock->taken += slot->holders.verdict == TOOL_HELD;
        findings->unanswered = findings->unanswered || slot->holders.answered < findings->quorum;
    }
    return code == REDLOCK_OK ? 0 : tool_report_code(session, code);
}

static int inspect(struct tool_session *session, struct tool_findings *findings, const char *resource) {
    int started = redlock_inspect(session->manager, resource, tool_session_completed, session);
    int code = tool_session_finish(session, started);
    if (code != REDLOCK_OK && code != REDLOCK_ERR_NO_QUORUM) {
        return tool_report_failure(session, NULL);
    }
    redlock_result *result = session->result;
    session->result = NULL;
    note_late(findings, result);
    struct tool_lock *lock = &findings->locks[findings->lock_count++];
    *lock = (struct tool_lock){.resource = resource,
                               .holders = tool_holders_of(result, findings->nodes, findings->quorum),
                               .waiters = result != NULL ? redlock_result_waiters(result) : -1,
                               .waited_ms = result != NULL ? redlock_result_waited_ms(result) : -1,
                               .result = result};
    findings->unanswered = findings->unanswered || lock->holders.answered < findings->quorum;
    return session->options->limit > 0 ? inspect_slots(session, findings, lock) : 0;
}

static int inspect_operands(struct tool_session *session, struct tool_findings *findings) {
    const struct tool_options *options = session->options;
    int status = 0;
    findings->locks = calloc(options->operand_count + 1, sizeof *findings->locks);
    if (findings->locks == NULL) {
        return tool_report_code(session, REDLOCK_ERR_NO_MEMORY);
    }
    for (size_t i = 0; i < options->operand_count && session->stop_signal == 0 && status == 0; i++) {
        status = inspect(session, findings, options->operands[i]);
    }
    return status;
}

/* The keys of one resource become a lock. The waiters are the median, as for an inspection. */
static void add_lock(struct tool_findings *findings, const struct tool_sight *listed, const struct tool_key *keys,
                     size_t count) {
    struct tool_sight sights[REDLOCK_NODES_MAX];
    int64_t waiters[REDLOCK_NODES_MAX];
    size_t told = 0;
    for (size_t i = 0; i < findings->nodes; i++) {
        sights[i] = listed[i];
    }
    for (size_t i = 0; i < count; i++) {
        sights[keys[i].node] = (struct tool_sight){
            .answered = true, .token = keys[i].token, .ttl_ms = keys[i].ttl_ms, .readers = keys[i].readers};
        if (keys[i].waiters >= 0) {
            waiters[told++] = keys[i].waiters;
        }
    }
    qsort(waiters, told, sizeof *waiters, tool_number_order);
    struct tool_lock *lock = &findings->locks[findings->lock_count++];
    *lock = (struct tool_lock){.resource = keys[0].resource,
                               .holders = tool_holders_count(sights, findings->nodes, findings->quorum),
                               .waiters = told > 0 ? waiters[(told - 1) / 2] : -1,
                               .waited_ms = -1};
    if (lock->holders.answered < findings->quorum) {
        lock->waiters = -1;
    }
}

static int gather(struct tool_session *session, struct tool_findings *findings) {
    struct tool_keys *keys = &findings->keys;
    struct tool_sight listed[REDLOCK_NODES_MAX] = {0};
    size_t answered = 0;
    tool_keys_sort(keys);
    findings->locks = calloc(keys->count + 1, sizeof *findings->locks);
    if (findings->locks == NULL) {
        return tool_report_code(session, REDLOCK_ERR_NO_MEMORY);
    }
    for (size_t i = 0; i < findings->nodes; i++) {
        const redlock_vote vote = tool_vote(findings->listing, i);
        const bool has_listed = vote.kind == REDLOCK_VOTE_GRANTED;
        /* Where some keys cannot be read, one that is not named may be among them. */
        listed[i].answered = has_listed && vote.error[0] == '\0';
        answered += has_listed;
    }
    findings->unanswered = answered < findings->quorum;
    for (size_t i = 0, same; i < keys->count; i += same) {
        same = tool_keys_same(keys, i);
        add_lock(findings, listed, &keys->keys[i], same);
    }
    return 0;
}

/* A listing may take minutes. After a signal nobody waits for its end: it comes with the close. */
static bool take(const redlock_listed *lock, void *data) {
    struct tool_session *session = data;
    return session->keys != NULL && tool_keys_take(lock, session->keys);
}

static void listed_all(const redlock_result *result, void *data) {
    struct tool_session *session = data;
    if (session->keys != NULL) {
        tool_session_completed(result, session);
    }
}

/* Returns its code, or that of a listing which a signal has ended. */
static int run_listing(struct tool_session *session, const redlock_list_options *list, struct tool_keys *keys) {
    tool_session_prepare(session);
    session->keys = keys;
    session->code = redlock_list(session->manager, list, take, listed_all, session);
    while (session->code == REDLOCK_OK && !session->done && session->stop_signal == 0) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    session->keys = NULL;
    return session->stop_signal == 0 ? session->code : REDLOCK_ERR_CANCELLED;
}

static int list_all(struct tool_session *session, struct tool_findings *findings) {
    const struct tool_options *options = session->options;
    redlock_list_options list;
    redlock_list_options_default(&list);
    list.match = options->match;
    list.others = options->match != NULL;
    int code = run_listing(session, &list, &findings->keys);
    if (session->stop_signal != 0) {
        return 0;
    }
    if (findings->keys.too_many) {
        tool_report_error(options, redlock_error_name(REDLOCK_ERR_LIMIT),
                          "the nodes have more than %d keys of locks: give --match PATTERN to list some of them",
                          TOOL_KEYS_MAX);
        return TOOL_EXIT_SYSTEM;
    }
    if (findings->keys.no_memory) {
        return tool_report_code(session, REDLOCK_ERR_NO_MEMORY);
    }
    if (code != REDLOCK_OK && code != REDLOCK_ERR_NO_QUORUM) {
        return tool_report_failure(session, NULL);
    }
    findings->listing = session->result;
    session->result = NULL;
    note_late(findings, findings->listing);
    return gather(session, findings);
}

/* Whether nodes take writes changes while they are connected. Besides, nothing else asks them in a
 * watch of no lock: one that hangs would look READY for ever. And one that looks far may have been
 * slow only once. */
static void ask_nodes(struct tool_session *session, struct tool_findings *findings) {
    (void)tool_session_finish(session,
                              redlock_inspect(session->manager, "redlock:probe", tool_session_completed, session));
    findings->probe = session->result;
    session->result = NULL;
}

static bool begins_with(const char *string, const char *words) {
    return strncmp(string, words, strlen(words)) == 0;
}

const char *tool_status_write_advice(const char *write_error) {
    static const struct {
        const char *words, *advice;
    } advices[] = {
        {"OOM ", "its memory is full: raise maxmemory, or delete keys"},
        {"MISCONF ", "it cannot save: see its log"},
        {"NOREPLICAS ", "too few replicas: bring them back, or lower min-replicas-to-write"},
        {"CLUSTERDOWN ", "turn cluster mode off, or assign all slots"},
    };
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++) {
        if (begins_with(write_error, advices[i].words)) {
            return advices[i].advice;
        }
    }
    return "Redlock needs independent primaries";
}

static struct tool_node look_at(const struct tool_session *session, const struct tool_findings *findings,
                                size_t index) {
    const redlock_node_info info = tool_session_node(session, index);
    const redlock_vote probe = tool_vote(findings->probe, index), list = tool_vote(findings->listing, index);
    const bool ready = info.state == REDLOCK_NODE_READY, listed = list.kind == REDLOCK_VOTE_GRANTED;
    /* A cluster that is down refuses to read, too. What else fails tells nothing about writes. */
    const bool refuses = ready && (probe.kind == REDLOCK_VOTE_DENIED || begins_with(probe.error, "CLUSTERDOWN "));
    struct tool_node node = {.info = info,
                             .ready = ready,
                             .far = tool_nodes_is_far(session, &info),
                             .write_error = refuses ? probe.error : "",
                             .queueless = ready && info.queue_refused,
                             .undecided = is_undecided(&info),
                             .quarantine_ms = ready || info.quarantine_ms > 0 ? info.quarantine_ms : -1,
                             .listed = listed,
                             .list_error = list.error};
    node.may_vote = tool_nodes_may_vote(session, &info) && node.write_error[0] == '\0';
    if (findings->listing != NULL && !listed && list.error[0] == '\0') {
        node.list_error = redlock_vote_name(list.kind);
    }
    return node;
}

int tool_status_find(struct tool_session *session, struct tool_findings *findings) {
    *findings = (struct tool_findings){.nodes = redlock_manager_node_count(session->manager),
                                       .quorum = redlock_manager_quorum(session->manager),
                                       .all = session->options->all};
    int status = findings->all ? list_all(session, findings) : inspect_operands(session, findings);
    /* After a signal a node may still be connecting, and would let an inspection wait. */
    if (status != 0 || session->stop_signal != 0) {
        return status;
    }
    ask_nodes(session, findings);
    await_listening(session);
    /* Look last, to include what the requests learned of the nodes. */
    for (size_t i = 0; i < findings->nodes; i++) {
        const struct tool_node node = findings->at[i] = look_at(session, findings, i);
        findings->ready += node.ready;
        findings->voters += node.may_vote;
        findings->refusing += node.write_error[0] != '\0';
        findings->far += node.far;
        findings->queueless += node.queueless;
    }
    return 0;
}

void tool_status_free(struct tool_findings *findings) {
    for (size_t i = 0; i < findings->lock_count; i++) {
        redlock_result_free(findings->locks[i].result);
        for (size_t slot = 0; findings->locks[i].slots != NULL && slot < findings->locks[i].limit; slot++) {
            redlock_result_free(findings->locks[i].slots[slot].result);
        }
        free(findings->locks[i].slots);
    }
    free(findings->locks);
    redlock_result_free(findings->probe);
    redlock_result_free(findings->listing);
    tool_keys_free(&findings->keys);
    *findings = (struct tool_findings){0};
}

bool tool_status_is_slow(const struct tool_findings *findings) {
    return findings->unanswered && findings->late && findings->ready >= findings->quorum;
}

bool tool_status_lacks_quorum(const struct tool_findings *findings) {
    return findings->voters < findings->quorum || findings->unanswered;
}
