/* What the nodes say about a resource as a whole. */
#include "holders.h"

#include <stdlib.h>
#include <string.h>

#include "values/values.h"

#define FOR_EVER_MS INT64_MAX

/* Returns how many nodes hold this token; writes their times to live into ttls_ms, and how many
 * read it there into readers, the least first. */
static size_t count_token(const struct tool_sight *sights, size_t nodes, const char *token, int64_t *ttls_ms,
                          int64_t *readers) {
    size_t held = 0;
    for (size_t i = 0; i < nodes; i++) {
        if (sights[i].token != NULL && strcmp(sights[i].token, token) == 0) {
            ttls_ms[held] = sights[i].ttl_ms < 0 ? FOR_EVER_MS : sights[i].ttl_ms;
            readers[held++] = sights[i].readers;
        }
    }
    qsort(ttls_ms, held, sizeof *ttls_ms, tool_number_order);
    qsort(readers, held, sizeof *readers, tool_number_order);
    return held;
}

static void judge(struct tool_holders *holders) {
    const size_t silent = holders->nodes - holders->answered;
    if (holders->held >= holders->quorum) {
        holders->verdict = TOOL_HELD;
    } else if (holders->free >= holders->quorum) {
        holders->verdict = TOOL_FREE;
    } else if (holders->held + silent >= holders->quorum || holders->free + silent >= holders->quorum) {
        holders->verdict = TOOL_UNKNOWN;
    } else {
        holders->verdict = TOOL_SPLIT;
    }
    holders->readers = holders->verdict == TOOL_HELD ? holders->readers : 0;
}

struct tool_holders tool_holders_count(const struct tool_sight *sights, size_t nodes, size_t quorum) {
    struct tool_holders holders = {.nodes = nodes, .quorum = quorum};
    int64_t ttls_ms[REDLOCK_NODES_MAX], readers[REDLOCK_NODES_MAX];
    for (size_t i = 0; i < nodes; i++) {
        const char *token = sights[i].token;
        holders.free += sights[i].answered && token == NULL;
        holders.answered += sights[i].answered;
        size_t held = token != NULL ? count_token(sights, nodes, token, ttls_ms, readers) : 0;
        if (held > holders.held) {
            holders.held = held;
            holders.token = token;
            int64_t ttl_ms = ttls_ms[held - (held >= quorum ? quorum : 1)];
            holders.remaining_ms = ttl_ms == FOR_EVER_MS ? -1 : ttl_ms;
            holders.readers = readers[(held - 1) / 2];
        }
    }
    judge(&holders);
    return holders;
}

redlock_vote tool_vote(const redlock_result *result, size_t node) {
    redlock_vote vote = {
        .size = sizeof vote, .node = "", .kind = REDLOCK_VOTE_PENDING, .error = "", .holder = "", .holder_text = ""};
    if (result != NULL) {
        (void)redlock_result_vote(result, node, &vote); /* of a refused result there are none */
    }
    return vote;
}

redlock_lock_reader tool_reader(const redlock_result *result, size_t index) {
    redlock_lock_reader reader = {.size = sizeof reader};
    if (result != NULL) {
        (void)redlock_result_reader(result, index, &reader); /* behind the last there is none */
    }
    return reader;
}

redlock_lock_waiter tool_waiter(const redlock_result *result, size_t index) {
    redlock_lock_waiter waiter = {.size = sizeof waiter};
    if (result != NULL) {
        (void)redlock_result_waiter(result, index, &waiter); /* behind the last there is none */
    }
    return waiter;
}

/* A node where the token has the lock alone has it, too: it was downgraded, or an older version
 * handed it over. */
static size_t count_alone(const struct tool_sight *sights, size_t nodes, const char *token) {
    size_t held = 0;
    for (size_t i = 0; i < nodes; i++) {
        held += sights[i].token != NULL && sights[i].readers == 0 && strcmp(sights[i].token, token) == 0;
    }
    return held;
}

/* Nodes may name another one first. */
static void count_readers(struct tool_holders *holders, const redlock_result *result, const struct tool_sight *sights) {
    int64_t count = 0, last_ms = 0;
    for (size_t i = 0;; i++) {
        const redlock_lock_reader reader = tool_reader(result, i);
        const size_t held = reader.token == NULL ? 0 : reader.nodes + count_alone(sights, holders->nodes, reader.token);
        if (held == 0) {
            break;
        }
        if (held > holders->held || (held >= holders->quorum && count == 0)) {
            holders->held = held;
            holders->token = reader.token;
            holders->remaining_ms = reader.ttl_ms;
        }
        count += held >= holders->quorum;
        last_ms = held >= holders->quorum && reader.ttl_ms > last_ms ? reader.ttl_ms : last_ms;
    }
    if (count > 0) {
        holders->readers = count;
        holders->remaining_ms = last_ms;
    }
    judge(holders);
}

struct tool_holders tool_holders_of(const redlock_result *result, size_t nodes, size_t quorum) {
    struct tool_sight sights[REDLOCK_NODES_MAX] = {0};
    for (size_t i = 0; i < nodes; i++) {
        const redlock_vote vote = tool_vote(result, i);
        const bool held = vote.kind == REDLOCK_VOTE_GRANTED;
        sights[i] = (struct tool_sight){.answered = held || vote.kind == REDLOCK_VOTE_DENIED,
                                        .token = held ? vote.holder : NULL,
                                        .ttl_ms = vote.holder_ttl_ms,
                                        .readers = vote.readers};
    }
    struct tool_holders holders = tool_holders_count(sights, nodes, quorum);
    count_readers(&holders, result, sights);
    return holders;
}

bool tool_holders_is_gate(const struct tool_holders *holders) {
    const char *token = holders->token != NULL ? holders->token : "";
    const size_t digits = strspn(token, "0123456789abcdef");
    return digits == 48 && token[digits] == 'p';
}

const char *tool_mode_name(bool shared) {
    return shared ? "shared" : "exclusive";
}

const char *tool_verdict_name(enum tool_verdict verdict) {
    static const char *const names[] = {"free", "held", "split", "unknown"};
    return names[verdict];
}
