/* The states of a bundle. */
#include "core/bundle.h"

#include <assert.h>

#include <redlock/result.h>

#include "core/time.h"

static redlock_items all_of(const struct redlock_bundle_core *bundle) {
    return ~(redlock_items)0 >> (REDLOCK_BUNDLE_MAX - bundle->count);
}

static redlock_items missing(const struct redlock_bundle_core *bundle) {
    return all_of(bundle) & ~bundle->held;
}

static redlock_items before(unsigned item) {
    return REDLOCK_ITEM(item) - 1;
}

static bool is_worse(int code, int than) {
    static const int8_t order[] = {
        REDLOCK_OK,         REDLOCK_ERR_TOO_SLOW, REDLOCK_ERR_NO_QUORUM, REDLOCK_ERR_CANCELLED,
        REDLOCK_ERR_CLOSED, REDLOCK_ERR_LOST};
    unsigned rank = 0, other = 0;
    for (unsigned i = 0; i < sizeof order; i++) {
        rank = order[i] == code ? i : rank;
        other = order[i] == than ? i : other;
    }
    return rank > other;
}

static bool may_help(int code) {
    return code == REDLOCK_ERR_CONTENDED || code == REDLOCK_ERR_NO_QUORUM || code == REDLOCK_ERR_TOO_SLOW;
}

/* Gives these leases up. */
static void end(struct redlock_bundle_core *bundle, redlock_items items, struct redlock_bundle_actions *actions) {
    actions->end |= items & bundle->held;
    bundle->held &= ~items;
}

static void try(struct redlock_bundle_core *bundle, struct redlock_bundle_actions *actions) {
    assert(bundle->asked == 0 && missing(bundle) != 0);
    bundle->state = REDLOCK_BUNDLE_TRYING;
    bundle->failed = bundle->count;
    bundle->asked = actions->ask = missing(bundle);
    bundle->attempts++;
}

static void hold(struct redlock_bundle_core *bundle, struct redlock_bundle_actions *actions) {
    assert(missing(bundle) == 0);
    bundle->state = REDLOCK_BUNDLE_HELD;
    actions->settle = actions->tell_acquired = true;
    actions->acquired_code = REDLOCK_OK;
}

static void fail(struct redlock_bundle_core *bundle, int code, struct redlock_bundle_actions *actions) {
    assert(code != REDLOCK_OK && bundle->asked == 0);
    end(bundle, bundle->held, actions);
    bundle->state = REDLOCK_BUNDLE_ENDED;
    actions->tell_acquired = true;
    actions->acquired_code = code;
}

static void leave(struct redlock_bundle_core *bundle, int code, struct redlock_bundle_actions *actions) {
    assert(code != REDLOCK_OK && bundle->asked != 0);
    if (bundle->state != REDLOCK_BUNDLE_RETREATING) {
        actions->cancel = bundle->asked;
    }
    end(bundle, bundle->held, actions);
    bundle->state = REDLOCK_BUNDLE_LEAVING;
    bundle->code = (int8_t)code;
}

/* An item is missing. The first one decides. */
static void note_failed(struct redlock_bundle_core *bundle, unsigned item, int code,
                        struct redlock_bundle_actions *actions) {
    if (item < bundle->failed) {
        bundle->failed = (uint8_t)item;
        bundle->failed_code = (int8_t)code;
        actions->keep = true;
    }
}

/* All have answered. */
static void go_on(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                  struct redlock_bundle_actions *actions) {
    assert(bundle->asked == 0);
    if (missing(bundle) == 0) {
        hold(bundle, actions);
        return;
    }
    const unsigned first = bundle->failed;
    assert((missing(bundle) & (before(first) | REDLOCK_ITEM(first))) == REDLOCK_ITEM(first));
    if (!may_help(bundle->failed_code) || event->now_ns >= bundle->wait_until_ns) {
        actions->tell_kept = !actions->keep;
        actions->keep = false;
        fail(bundle, bundle->failed_code, actions);
        return;
    }
    actions->keep = false;
    end(bundle, ~before(first), actions);
    bundle->state = REDLOCK_BUNDLE_WAITING;
    bundle->asked = actions->wait = REDLOCK_ITEM(first);
    bundle->attempts++;
}

static void on_answer(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                      struct redlock_bundle_actions *actions) {
    const bool won = event->type == REDLOCK_BUNDLE_WON;
    assert(bundle->asked & REDLOCK_ITEM(event->item));
    bundle->asked &= ~REDLOCK_ITEM(event->item);
    bundle->held |= won ? REDLOCK_ITEM(event->item) : 0;
    switch (bundle->state) {
    case REDLOCK_BUNDLE_TRYING:
    case REDLOCK_BUNDLE_RETREATING:
        if (!won) {
            note_failed(bundle, event->item, event->code, actions);
        }
        if (bundle->asked == 0) {
            go_on(bundle, event, actions);
        }
        break;
    case REDLOCK_BUNDLE_WAITING:
        if (!won) {
            fail(bundle, event->code, actions);
        } else if (missing(bundle) == 0) {
            hold(bundle, actions);
        } else {
            try(bundle, actions);
        }
        break;
    default:
        assert(bundle->state == REDLOCK_BUNDLE_LEAVING && !won); /* it was cancelled */
        if (bundle->asked == 0) {
            fail(bundle, bundle->code, actions);
        }
    }
}

static void answer_extension(struct redlock_bundle_core *bundle, int code, struct redlock_bundle_actions *actions) {
    bundle->extending = false;
    actions->tell_extended = true;
    actions->extended_code = code;
}

static void on_extended(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                        struct redlock_bundle_actions *actions) {
    assert(bundle->extended & REDLOCK_ITEM(event->item));
    bundle->extended &= ~REDLOCK_ITEM(event->item);
    if (!bundle->extending) {
        return; /* its loss was told */
    }
    const bool is_worst = is_worse(event->code, bundle->extended_code);
    bundle->extended_code = is_worst ? (int8_t)event->code : bundle->extended_code;
    if (bundle->extended == 0) {
        actions->tell_kept = bundle->extended_code != REDLOCK_OK && !is_worst;
        answer_extension(bundle, bundle->extended_code, actions);
    } else {
        actions->keep = is_worst;
    }
}

static void on_released(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                        struct redlock_bundle_actions *actions) {
    assert(bundle->state == REDLOCK_BUNDLE_RELEASING && (bundle->releasing & REDLOCK_ITEM(event->item)));
    const bool is_worst = is_worse(event->code, bundle->code);
    bundle->releasing &= ~REDLOCK_ITEM(event->item);
    bundle->code = is_worst ? (int8_t)event->code : bundle->code;
    if (bundle->releasing == 0) {
        bundle->state = REDLOCK_BUNDLE_ENDED;
        actions->tell_kept = bundle->code != REDLOCK_OK && !is_worst;
        actions->tell_released = true;
        actions->released_code = bundle->code;
    } else {
        actions->keep = is_worst;
    }
}

/* It is held no more, so none of them is of use. */
static void lose(struct redlock_bundle_core *bundle, unsigned item, struct redlock_bundle_actions *actions) {
    end(bundle, REDLOCK_ITEM(item), actions);
    if (bundle->lock_delay) {
        actions->forget = bundle->held;
        bundle->held = 0;
    } else {
        end(bundle, bundle->held, actions);
    }
    bundle->state = REDLOCK_BUNDLE_LOST;
    actions->keep = actions->tell_lost = true;
    if (bundle->extending) {
        answer_extension(bundle, REDLOCK_ERR_LOST, actions);
    }
}

static void on_lost(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                    struct redlock_bundle_actions *actions) {
    assert(bundle->held & REDLOCK_ITEM(event->item));
    switch (bundle->state) {
    case REDLOCK_BUNDLE_TRYING:
        end(bundle, REDLOCK_ITEM(event->item), actions);
        note_failed(bundle, event->item, REDLOCK_ERR_NO_QUORUM, actions);
        break;
    case REDLOCK_BUNDLE_WAITING:
        bundle->state = REDLOCK_BUNDLE_RETREATING;
        actions->cancel = bundle->asked;
        /* fall through */
    case REDLOCK_BUNDLE_RETREATING:
        end(bundle, ~before(event->item), actions);
        note_failed(bundle, event->item, REDLOCK_ERR_NO_QUORUM, actions);
        break;
    default:
        assert(bundle->state == REDLOCK_BUNDLE_HELD);
        lose(bundle, event->item, actions);
    }
}

static void on_release(struct redlock_bundle_core *bundle, struct redlock_bundle_actions *actions) {
    assert(redlock_bundle_is_out(bundle));
    const bool was_lost = bundle->state == REDLOCK_BUNDLE_LOST;
    bundle->state = REDLOCK_BUNDLE_RELEASING;
    bundle->code = was_lost ? REDLOCK_ERR_LOST : REDLOCK_OK;
    bundle->releasing = actions->release = bundle->held;
    bundle->held = 0;
    actions->later = was_lost;
}

/* The answer to the release of a bundle that was lost before. */
static void on_timer(struct redlock_bundle_core *bundle, struct redlock_bundle_actions *actions) {
    if (bundle->state == REDLOCK_BUNDLE_RELEASING && bundle->releasing == 0) {
        bundle->state = REDLOCK_BUNDLE_ENDED;
        actions->tell_released = actions->tell_kept = true;
        actions->released_code = bundle->code;
    }
}

static void on_close(struct redlock_bundle_core *bundle) {
    bundle->held = 0;
    switch (bundle->state) {
    case REDLOCK_BUNDLE_TRYING:
    case REDLOCK_BUNDLE_WAITING:
    case REDLOCK_BUNDLE_RETREATING:
        bundle->state = REDLOCK_BUNDLE_LEAVING;
        bundle->code = REDLOCK_ERR_CLOSED;
        break;
    case REDLOCK_BUNDLE_HELD:
    case REDLOCK_BUNDLE_LOST:
        bundle->state = REDLOCK_BUNDLE_ENDED;
        break;
    default:
        break;
    }
}

void redlock_bundle_init(struct redlock_bundle_core *bundle, unsigned count, int64_t wait_until_ns, bool lock_delay) {
    assert(count >= 1 && count <= REDLOCK_BUNDLE_MAX);
    *bundle = (struct redlock_bundle_core){.state = REDLOCK_BUNDLE_IDLE,
                                           .count = (uint8_t)count,
                                           .failed = (uint8_t)count,
                                           .lock_delay = lock_delay,
                                           .wait_until_ns = wait_until_ns};
}

static void on_call(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                    struct redlock_bundle_actions *actions) {
    switch (event->type) {
    case REDLOCK_BUNDLE_BEGIN:
        assert(bundle->state == REDLOCK_BUNDLE_IDLE);
        try(bundle, actions);
        break;
    case REDLOCK_BUNDLE_ADOPT:
        assert(bundle->state == REDLOCK_BUNDLE_IDLE);
        bundle->state = REDLOCK_BUNDLE_HELD;
        bundle->held = all_of(bundle);
        break;
    case REDLOCK_BUNDLE_CANCEL:
        if (bundle->state >= REDLOCK_BUNDLE_TRYING && bundle->state <= REDLOCK_BUNDLE_RETREATING) {
            leave(bundle, event->code, actions);
        }
        break;
    case REDLOCK_BUNDLE_EXTEND:
        assert(bundle->state == REDLOCK_BUNDLE_HELD && !bundle->extending && bundle->extended == 0);
        bundle->extending = true;
        bundle->extended_code = REDLOCK_OK;
        bundle->extended = actions->extend = bundle->held;
        break;
    case REDLOCK_BUNDLE_RELEASE:
        on_release(bundle, actions);
        break;
    case REDLOCK_BUNDLE_FORGET:
        assert(redlock_bundle_is_out(bundle));
        actions->forget = bundle->held;
        bundle->held = 0;
        bundle->state = REDLOCK_BUNDLE_ENDED;
        break;
    default:
        on_close(bundle);
    }
}

void redlock_bundle_step(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                         struct redlock_bundle_actions *actions) {
    *actions = (struct redlock_bundle_actions){0};
    assert(event->item < bundle->count);
    switch (event->type) {
    case REDLOCK_BUNDLE_WON:
    case REDLOCK_BUNDLE_FAILED:
        on_answer(bundle, event, actions);
        break;
    case REDLOCK_BUNDLE_EXTENDED:
        on_extended(bundle, event, actions);
        break;
    case REDLOCK_BUNDLE_ITEM_LOST:
        on_lost(bundle, event, actions);
        break;
    case REDLOCK_BUNDLE_RELEASED:
        on_released(bundle, event, actions);
        break;
    case REDLOCK_BUNDLE_TIMER:
        on_timer(bundle, actions);
        break;
    default:
        on_call(bundle, event, actions);
    }
    assert((bundle->asked & bundle->held) == 0);
}
