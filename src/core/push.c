/* Push against release, as in the table of core/push.h. */
#include "core/push.h"

#include <assert.h>

static bool is_push(enum redlock_push_event event) {
    return event == REDLOCK_PUSH_CAME || event == REDLOCK_PUSH_CAME_TIMED;
}

/* The token waits, or holds the lock. */
static enum redlock_push_action while_wanted(uint8_t *state, enum redlock_push_event event) {
    const uint8_t before = *state;
    switch (event) {
    case REDLOCK_PUSH_CAME:
        *state = REDLOCK_PUSH_TOLD;
        return REDLOCK_PUSH_COUNT;
    case REDLOCK_PUSH_CAME_TIMED:
        *state = REDLOCK_PUSH_TIMING;
        return before == REDLOCK_PUSH_TIMING ? REDLOCK_PUSH_NOTHING : REDLOCK_PUSH_ASK_TIME;
    case REDLOCK_PUSH_TIME:
        if (before == REDLOCK_PUSH_ASKED) {
            break; /* after the push of an earlier token */
        }
        *state = REDLOCK_PUSH_TOLD;
        return REDLOCK_PUSH_COUNT;
    case REDLOCK_PUSH_NO_TIME:
        *state = before == REDLOCK_PUSH_TIMING ? REDLOCK_PUSH_TOLD : before;
        break;
    case REDLOCK_PUSH_TELL:
        *state = before == REDLOCK_PUSH_ASKED ? REDLOCK_PUSH_TOLD : before;
        break;
    case REDLOCK_PUSH_RELEASE:
        *state = before == REDLOCK_PUSH_ASKED ? REDLOCK_PUSH_RELEASING : REDLOCK_PUSH_RELEASING_TOLD;
        break;
    case REDLOCK_PUSH_GIVE_UP:
        *state = REDLOCK_PUSH_GIVEN_UP;
        break;
    default:
        break;
    }
    return REDLOCK_PUSH_NOTHING;
}

/* Our RELEASE is under way there. */
static void while_released(uint8_t *state, enum redlock_push_event event) {
    const uint8_t before = *state;
    switch (event) {
    case REDLOCK_PUSH_CAME:
    case REDLOCK_PUSH_CAME_TIMED:
        *state = REDLOCK_PUSH_CROSSED;
        break;
    case REDLOCK_PUSH_TELL:
        *state = before == REDLOCK_PUSH_RELEASING ? REDLOCK_PUSH_RELEASING_TOLD : before;
        break;
    case REDLOCK_PUSH_TAKEN:
        *state = before == REDLOCK_PUSH_RELEASING ? REDLOCK_PUSH_EXPECTED : REDLOCK_PUSH_DONE;
        break;
    case REDLOCK_PUSH_MISSING: /* a WAIT came after the release, on an old connection */
        *state = before == REDLOCK_PUSH_CROSSED ? REDLOCK_PUSH_OWING : REDLOCK_PUSH_GIVEN_UP;
        break;
    case REDLOCK_PUSH_UNCONFIRMED:
        *state = REDLOCK_PUSH_DONE;
        break;
    default:
        break;
    }
}

enum redlock_push_action redlock_push_step(uint8_t *state, enum redlock_push_event event) {
    assert(*state <= REDLOCK_PUSH_KEPT);
    if (event == REDLOCK_PUSH_KEEP && *state != REDLOCK_PUSH_UNASKED) {
        *state = REDLOCK_PUSH_KEPT;
    }
    const enum redlock_push_state before = *state;
    switch (before) {
    case REDLOCK_PUSH_UNASKED: /* a push: the token is that of the places before */
        *state = event == REDLOCK_PUSH_ASK ? REDLOCK_PUSH_ASKED : REDLOCK_PUSH_UNASKED;
        return is_push(event) ? REDLOCK_PUSH_GIVE_BACK : REDLOCK_PUSH_NOTHING;
    case REDLOCK_PUSH_ASKED:
    case REDLOCK_PUSH_TIMING:
    case REDLOCK_PUSH_TOLD:
        return while_wanted(state, event);
    case REDLOCK_PUSH_RELEASING:
    case REDLOCK_PUSH_RELEASING_TOLD:
    case REDLOCK_PUSH_CROSSED:
        while_released(state, event);
        break;
    case REDLOCK_PUSH_EXPECTED:
        *state = is_push(event) || event == REDLOCK_PUSH_TELL ? REDLOCK_PUSH_DONE : REDLOCK_PUSH_EXPECTED;
        break;
    case REDLOCK_PUSH_GIVEN_UP:
    case REDLOCK_PUSH_OWING:
        return is_push(event) ? REDLOCK_PUSH_GIVE_BACK : REDLOCK_PUSH_NOTHING;
    case REDLOCK_PUSH_DONE:
    case REDLOCK_PUSH_KEPT:
        break;
    }
    return REDLOCK_PUSH_NOTHING;
}

void redlock_push_step_all(struct redlock_grants *grants, redlock_nodes nodes, enum redlock_push_event event) {
    assert(!is_push(event) && event != REDLOCK_PUSH_TIME);
    for (; nodes != 0; nodes &= nodes - 1) {
        (void)redlock_push_step(&grants->nodes[redlock_nodes_first(nodes)].push, event);
    }
}

redlock_nodes redlock_push_nodes_in(const struct redlock_grants *grants, redlock_nodes nodes,
                                    enum redlock_push_state state) {
    redlock_nodes found = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        const unsigned node = redlock_nodes_first(nodes);
        found |= grants->nodes[node].push == state ? REDLOCK_NODE(node) : 0;
    }
    return found;
}

enum redlock_push_event redlock_push_released(redlock_vote_kind vote) {
    return vote == REDLOCK_VOTE_GRANTED  ? REDLOCK_PUSH_TAKEN
           : vote == REDLOCK_VOTE_DENIED ? REDLOCK_PUSH_MISSING
                                         : REDLOCK_PUSH_UNCONFIRMED;
}

void redlock_push_expect(struct redlock_push_expected *expected, uint64_t token_id, redlock_nodes nodes,
                         int64_t until_ns) {
    const uint32_t at = expected->next++ % REDLOCK_PUSH_EXPECTED_MAX;
    expected->tokens[at].token_id = token_id;
    expected->tokens[at].until_ns = until_ns;
    expected->tokens[at].nodes = nodes;
}

bool redlock_push_is_expected(struct redlock_push_expected *expected, uint64_t token_id, unsigned node,
                              int64_t now_ns) {
    assert(node < REDLOCK_NODES_MAX);
    for (unsigned i = 0; i < REDLOCK_PUSH_EXPECTED_MAX; i++) {
        redlock_nodes *nodes = &expected->tokens[i].nodes;
        if (expected->tokens[i].token_id == token_id && (*nodes & REDLOCK_NODE(node)) != 0 &&
            now_ns < expected->tokens[i].until_ns) {
            *nodes &= ~REDLOCK_NODE(node);
            return true;
        }
    }
    return false;
}

void redlock_push_expect_none(struct redlock_push_expected *expected, unsigned node) {
    assert(node < REDLOCK_NODES_MAX);
    for (unsigned i = 0; i < REDLOCK_PUSH_EXPECTED_MAX; i++) {
        expected->tokens[i].nodes &= ~REDLOCK_NODE(node);
    }
}
