/* The states of a candidate. */
#include "core/candidate.h"

#include <assert.h>

#include "core/time.h"

void redlock_candidate_init(struct redlock_candidate *candidate) {
    *candidate = (struct redlock_candidate){.state = REDLOCK_CANDIDATE_OUT, .wake_ns = REDLOCK_NEVER_NS};
}

static void campaign(struct redlock_candidate *candidate, int64_t now_ns, struct redlock_candidate_actions *actions) {
    assert(!actions->cancel && !actions->acquire);
    candidate->state = REDLOCK_CANDIDATE_CAMPAIGNING;
    candidate->wake_ns = redlock_after_ms(now_ns, REDLOCK_CANDIDATE_LOOK_MS);
    actions->acquire = true;
}

static void tell(redlock_election_event_kind what, int code, struct redlock_candidate_actions *actions) {
    assert(actions->tell == REDLOCK_ELECTION_NOTHING);
    actions->tell = what;
    actions->code = code;
}

static void tell_trouble(struct redlock_candidate *candidate, int code, struct redlock_candidate_actions *actions) {
    if (code != candidate->trouble) {
        candidate->trouble = code;
        tell(REDLOCK_ELECTION_TROUBLE, code, actions);
    }
}

/* Resigns or ends. `next` is the state in which it waits for that. */
static void leave(struct redlock_candidate *candidate, enum redlock_candidate_state next, int64_t now_ns,
                  struct redlock_candidate_actions *actions) {
    assert(next == REDLOCK_CANDIDATE_LEAVING || next == REDLOCK_CANDIDATE_ENDING);
    switch (candidate->state) {
    case REDLOCK_CANDIDATE_CAMPAIGNING:
        actions->cancel = true;
        candidate->wake_ns = REDLOCK_NEVER_NS;
        break;
    case REDLOCK_CANDIDATE_LEADING:
        actions->release = actions->report = true;
        candidate->wake_ns = REDLOCK_NEVER_NS;
        break;
    case REDLOCK_CANDIDATE_OUT:
    case REDLOCK_CANDIDATE_PAUSED:
        candidate->wake_ns = now_ns;
        break;
    case REDLOCK_CANDIDATE_LEAVING:
    case REDLOCK_CANDIDATE_ENDING:
    case REDLOCK_CANDIDATE_CLOSING:
    case REDLOCK_CANDIDATE_ENDED:
        break; /* what it waits for is under way */
    }
    candidate->state = next;
    candidate->again = false;
}

static void left(struct redlock_candidate *candidate, int code, int64_t now_ns,
                 struct redlock_candidate_actions *actions) {
    assert(candidate->state == REDLOCK_CANDIDATE_LEAVING || candidate->state == REDLOCK_CANDIDATE_ENDING);
    candidate->wake_ns = REDLOCK_NEVER_NS;
    candidate->trouble = REDLOCK_OK;
    candidate->untold = false;
    if (candidate->state == REDLOCK_CANDIDATE_ENDING) {
        candidate->state = REDLOCK_CANDIDATE_ENDED;
        tell(REDLOCK_ELECTION_ENDED, code, actions);
        return;
    }
    candidate->state = REDLOCK_CANDIDATE_OUT;
    if (candidate->again) {
        candidate->again = false;
        campaign(candidate, now_ns, actions);
    }
    tell(REDLOCK_ELECTION_RESIGNED, code, actions);
}

static void on_timer(struct redlock_candidate *candidate, int code, int64_t now_ns,
                     struct redlock_candidate_actions *actions) {
    if (now_ns < candidate->wake_ns) {
        return;
    }
    assert(candidate->state != REDLOCK_CANDIDATE_LEADING && candidate->state != REDLOCK_CANDIDATE_OUT);
    candidate->wake_ns = redlock_after_ms(now_ns, REDLOCK_CANDIDATE_LOOK_MS);
    if (candidate->state == REDLOCK_CANDIDATE_CAMPAIGNING) {
        tell_trouble(candidate, code, actions);
    } else if (candidate->state != REDLOCK_CANDIDATE_PAUSED) {
        left(candidate, REDLOCK_OK, now_ns, actions);
    } else if (candidate->untold) {
        candidate->untold = false;
        tell(REDLOCK_ELECTION_TROUBLE, candidate->trouble, actions);
    } else {
        campaign(candidate, now_ns, actions);
    }
}

static void on_failed(struct redlock_candidate *candidate, int code, int64_t now_ns,
                      struct redlock_candidate_actions *actions) {
    assert(code != REDLOCK_OK);
    if (candidate->state != REDLOCK_CANDIDATE_CAMPAIGNING) {
        left(candidate, REDLOCK_OK, now_ns, actions); /* the acquire that was cancelled */
        return;
    }
    candidate->state = REDLOCK_CANDIDATE_PAUSED;
    candidate->wake_ns = redlock_after_ms(now_ns, REDLOCK_CANDIDATE_LOOK_MS);
    tell_trouble(candidate, code, actions);
}

static void on_refused(struct redlock_candidate *candidate, int code, int64_t now_ns) {
    assert(candidate->state == REDLOCK_CANDIDATE_CAMPAIGNING && code != REDLOCK_OK);
    candidate->state = REDLOCK_CANDIDATE_PAUSED;
    candidate->untold = code != candidate->trouble;
    candidate->trouble = code;
    if (candidate->untold) {
        candidate->wake_ns = now_ns;
    }
}

static void on_call(struct redlock_candidate *candidate, enum redlock_candidate_input input, int64_t now_ns,
                    struct redlock_candidate_actions *actions) {
    const enum redlock_candidate_state state = candidate->state;
    switch (input) {
    case REDLOCK_CANDIDATE_DO_CAMPAIGN:
        if (state == REDLOCK_CANDIDATE_OUT) {
            campaign(candidate, now_ns, actions);
        }
        candidate->again = state == REDLOCK_CANDIDATE_LEAVING;
        break;
    case REDLOCK_CANDIDATE_DO_RESIGN:
        if (state != REDLOCK_CANDIDATE_OUT) {
            leave(candidate, REDLOCK_CANDIDATE_LEAVING, now_ns, actions);
        }
        break;
    default:
        assert(input == REDLOCK_CANDIDATE_DO_END);
        leave(candidate, REDLOCK_CANDIDATE_ENDING, now_ns, actions);
    }
}

/* Nothing counts any more but the end of the close. */
static void on_closing(struct redlock_candidate *candidate, enum redlock_candidate_input input,
                       struct redlock_candidate_actions *actions) {
    assert(candidate->state == REDLOCK_CANDIDATE_CLOSING);
    if (input == REDLOCK_CANDIDATE_CLOSED) {
        candidate->state = REDLOCK_CANDIDATE_ENDED;
        tell(REDLOCK_ELECTION_ENDED, REDLOCK_ERR_CLOSED, actions);
    }
}

void redlock_candidate_step(struct redlock_candidate *candidate, enum redlock_candidate_input input, int code,
                            int64_t now_ns, struct redlock_candidate_actions *actions) {
    *actions = (struct redlock_candidate_actions){0};
    assert(candidate->state != REDLOCK_CANDIDATE_ENDED);
    if (candidate->state == REDLOCK_CANDIDATE_CLOSING) {
        on_closing(candidate, input, actions);
        return;
    }
    switch (input) {
    case REDLOCK_CANDIDATE_DO_CAMPAIGN:
    case REDLOCK_CANDIDATE_DO_RESIGN:
    case REDLOCK_CANDIDATE_DO_END:
        assert(!redlock_candidate_is_ending(candidate));
        on_call(candidate, input, now_ns, actions);
        break;
    case REDLOCK_CANDIDATE_DO_CLOSE:
    case REDLOCK_CANDIDATE_CLOSED: /* only after DO_CLOSE, so not here */
        assert(input == REDLOCK_CANDIDATE_DO_CLOSE);
        candidate->state = REDLOCK_CANDIDATE_CLOSING;
        candidate->wake_ns = REDLOCK_NEVER_NS;
        break;
    case REDLOCK_CANDIDATE_WON:
        assert(candidate->state == REDLOCK_CANDIDATE_CAMPAIGNING);
        candidate->state = REDLOCK_CANDIDATE_LEADING;
        candidate->wake_ns = REDLOCK_NEVER_NS;
        candidate->trouble = REDLOCK_OK;
        tell(REDLOCK_ELECTION_LEADING, REDLOCK_OK, actions);
        break;
    case REDLOCK_CANDIDATE_FAILED:
        on_failed(candidate, code, now_ns, actions);
        break;
    case REDLOCK_CANDIDATE_REFUSED:
        on_refused(candidate, code, now_ns);
        break;
    case REDLOCK_CANDIDATE_EXPIRING:
        assert(candidate->state == REDLOCK_CANDIDATE_LEADING);
        tell(REDLOCK_ELECTION_EXPIRING, REDLOCK_OK, actions);
        break;
    case REDLOCK_CANDIDATE_LOST:
        assert(candidate->state == REDLOCK_CANDIDATE_LEADING);
        actions->release = true;
        campaign(candidate, now_ns, actions);
        tell(REDLOCK_ELECTION_LOST, REDLOCK_ERR_LOST, actions);
        break;
    case REDLOCK_CANDIDATE_RELEASED:
        left(candidate, code, now_ns, actions);
        break;
    case REDLOCK_CANDIDATE_TIMER:
        on_timer(candidate, code, now_ns, actions);
        break;
    }
}
