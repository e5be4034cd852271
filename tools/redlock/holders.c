/* What the nodes say about a resource as a whole. */
#include "holders.h"

#include <stdlib.h>
#include <string.h>

#include "values/values.h"

#define FOR_EVER_MS INT64_MAX

/* Returns how many nodes hold this token; writes their times to live into ttls_ms, the shortest
 * first. */
static size_t count_token(const struct tool_sight *sights, size_t nodes, const char *token, int64_t *ttls_ms) {
    size_t held = 0;
    for (size_t i = 0; i < nodes; i++) {
        if (sights[i].token != NULL && strcmp(sights[i].token, token) == 0) {
            ttls_ms[held++] = sights[i].ttl_ms < 0 ? FOR_EVER_MS : sights[i].ttl_ms;
        }
    }
    qsort(ttls_ms, held, sizeof *ttls_ms, tool_number_order);
    return held;
}

struct tool_holders tool_holders_count(const struct tool_sight *sights, size_t nodes, size_t quorum) {
    struct tool_holders holders = {.nodes = nodes, .quorum = quorum};
    int64_t ttls_ms[REDLOCK_NODES_MAX];
    for (size_t i = 0; i < nodes; i++) {
        const char *token = sights[i].token;
        holders.free += sights[i].answered && token == NULL;
        holders.answered += sights[i].answered;
        size_t held = token != NULL ? count_token(sights, nodes, token, ttls_ms) : 0;
        if (held > holders.held) {
            holders.held = held;
            holders.token = token;
            int64_t ttl_ms = ttls_ms[held - (held >= quorum ? quorum : 1)];
            holders.remaining_ms = ttl_ms == FOR_EVER_MS ? -1 : ttl_ms;
        }
    }
    size_t silent = nodes - holders.answered;
    if (holders.held >= holders.quorum) {
        holders.verdict = TOOL_HELD;
    } else if (holders.free >= holders.quorum) {
        holders.verdict = TOOL_FREE;
    } else if (holders.held + silent >= holders.quorum || holders.free + silent >= holders.quorum) {
        holders.verdict = TOOL_UNKNOWN;
    } else {
        holders.verdict = TOOL_SPLIT;
    }
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

struct tool_holders tool_holders_of(const redlock_result *result, size_t nodes, size_t quorum) {
    struct tool_sight sights[REDLOCK_NODES_MAX] = {0};
    for (size_t i = 0; i < nodes; i++) {
        const redlock_vote vote = tool_vote(result, i);
        const bool held = vote.kind == REDLOCK_VOTE_GRANTED;
        sights[i] = (struct tool_sight){.answered = held || vote.kind == REDLOCK_VOTE_DENIED,
                                        .token = held ? vote.holder : NULL,
                                        .ttl_ms = vote.holder_ttl_ms};
    }
    return tool_holders_count(sights, nodes, quorum);
}

const char *tool_verdict_name(enum tool_verdict verdict) {
    static const char *const names[] = {"free", "held", "split", "unknown"};
    return names[verdict];
}
