/* Does what core/permits.h says: asks for the gate of slots, takes them there, and leaves it. */
#include "group/permits.h"

#include <assert.h>

#include "core/planted.h"
#include "group/driver.h"

#define GATE_TTL_MS_MAX 10000 /* who dies at the gate keeps the others out for so long */

int redlock_permits_check_slots(struct redlock_error_text *failure, const redlock_acquire_options *options,
                                bool adopts) {
    if (!adopts) {
        return options->slots ? redlock_fail(failure, REDLOCK_ERR_INVALID, "slots is only for redlock_adopt()")
                              : REDLOCK_OK;
    }
    if (options->permits > 0 && !options->slots) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "permits are adopted with slots: which ones");
    }
    for (uint32_t i = 0; i < options->permits; i++) {
        const int code =
            redlock_check_range(failure, "slots", options->slots[i], 0, (int64_t)options->limit - 1, " (below limit)");
        if (code != REDLOCK_OK) {
            return code;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (options->slots[i] == options->slots[j]) {
                return redlock_fail(failure, REDLOCK_ERR_INVALID, "slots names slot %u twice", options->slots[i]);
            }
        }
    }
    return REDLOCK_OK;
}

int redlock_permits_check(struct redlock_error_text *failure, const redlock_acquire_options *options) {
    if (options->permits == 0) {
        return options->limit == 0 ? REDLOCK_OK
                                   : redlock_fail(failure, REDLOCK_ERR_INVALID,
                                                  "limit is for permits: say how many of them with permits");
    }
    int code = redlock_check_range(failure, "limit", options->limit, 1, REDLOCK_LIMIT_MAX, " with permits");
    if (code == REDLOCK_OK && options->permits > options->limit) {
        code =
            redlock_fail(failure, REDLOCK_ERR_INVALID, "permits is %u, and limit is %u: nobody could ever have so many",
                         options->permits, options->limit);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_range(failure, "permits", options->permits, 1, REDLOCK_PERMITS_MAX, "");
    }
    if (code == REDLOCK_OK && options->mode != REDLOCK_EXCLUSIVE) {
        code = redlock_fail(failure, REDLOCK_ERR_INVALID,
                            "permits are not for SHARED: a resource is read, or it has permits");
    }
    return code;
}

static void act(struct redlock_lease *lease, enum redlock_permits_action action, int code);

static void step(struct redlock_lease *lease, enum redlock_permits_event event, int code) {
    act(lease, redlock_permits_step(&redlock_handle_permits(lease)->core, event), code);
}

static void on_gate_lost(struct redlock_lease *gate, const char *reason, void *data) {
    struct redlock_lease *lease = data;
    (void)reason;
    assert(redlock_handle_permits(lease)->gate == gate);
    redlock_handle_permits(lease)->gate = NULL;
    (void)redlock_release(gate, NULL, NULL);
    step(lease, REDLOCK_PERMITS_GATE_LOST, REDLOCK_OK);
}

redlock_acquire_options redlock_permits_gate_options(struct redlock_lease *lease) {
    const struct redlock_plan *plan = &lease->core.plan;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.ttl_ms = plan->ttl_ms < GATE_TTL_MS_MAX ? plan->ttl_ms : GATE_TTL_MS_MAX;
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER; /* the acquire of the slots ends it */
    options.retry_delay_min_ms = plan->retry_delay_min_ms;
    options.retry_delay_max_ms = plan->retry_delay_max_ms;
    options.auto_extend = true;
    options.heal = plan->heal;
    options.on_lost = on_gate_lost;
    options.lost_data = lease;
    return options;
}

void redlock_permits_at_gate(const redlock_result *result, void *data) {
    struct redlock_lease *lease = data;
    const int code = redlock_result_code(result);
    if (code == REDLOCK_OK) {
        step(lease, REDLOCK_PERMITS_GATE_HELD, code);
    } else {
        redlock_handle_permits(lease)->gate = NULL;
        step(lease, REDLOCK_PERMITS_NO_GATE, code);
    }
}

static void nobody_waits(const redlock_result *result, void *data) {
    (void)result;
    (void)data;
}

/* Of a group that closes, the gate may have ended before. */
static void leave(struct redlock_lease *gate) {
    gate->lost_cb = NULL;
    if (gate->life == REDLOCK_LIFE_REQUESTED) {
        gate->cb = nobody_waits;
        redlock_request_cancel((redlock_request *)gate);
    } else if (gate->life == REDLOCK_LIFE_OUT) {
        (void)redlock_release(gate, NULL, NULL);
    }
}

static void ask_gate(struct redlock_lease *lease) {
    struct redlock_permits *permits = redlock_handle_permits(lease);
    const int code = permits->ask_gate(lease, &permits->gate);
    if (code != REDLOCK_OK) {
        step(lease, REDLOCK_PERMITS_NO_GATE, code);
    }
}

static void feed(struct redlock_lease *lease, enum redlock_event_type type, int code) {
    struct redlock_event event = redlock_driver_event(lease, type, 0);
    event.code = code;
    redlock_driver_feed(lease, &event);
}

static void act(struct redlock_lease *lease, enum redlock_permits_action action, int code) {
    struct redlock_permits *permits = redlock_handle_permits(lease);
    struct redlock_lease *gate = permits->gate;
    switch (action) {
    case REDLOCK_PERMITS_NOTHING:
        break;
    case REDLOCK_PERMITS_EXCLUDE:
        feed(lease, REDLOCK_EVENT_EXCLUDE, code);
        if (permits->core.state == REDLOCK_PERMITS_QUEUING) { /* or the wait is over */
            ask_gate(lease);
        }
        break;
    case REDLOCK_PERMITS_ASK_GATE:
        ask_gate(lease);
        break;
    case REDLOCK_PERMITS_ADMIT:
        feed(lease, REDLOCK_EVENT_ADMIT, code);
        break;
    case REDLOCK_PERMITS_FAIL:
        feed(lease, REDLOCK_EVENT_CANCEL, code);
        break;
    case REDLOCK_PERMITS_LEAVE_GATE:
        permits->gate = NULL;
        if (gate && REDLOCK_PLANTED(PERMITS_GATE_STAYS)) {
            gate->lost_cb = NULL;
        } else if (gate) {
            leave(gate);
        }
        break;
    }
}

static void stepped(struct redlock_lease *lease, bool lost) {
    if (lease->core.state >= REDLOCK_LEASE_ADOPTED) {
        redlock_handle_permits(lease)->stepped = NULL;
        step(lease, REDLOCK_PERMITS_ENDED, REDLOCK_OK);
    } else if (lost && lease->core.state == REDLOCK_LEASE_RETRYING) {
        step(lease, REDLOCK_PERMITS_LOST, REDLOCK_OK);
    }
}

void redlock_permits_begin(struct redlock_lease *lease, bool in_order, int64_t now_ns,
                           int (*ask)(struct redlock_lease *lease, struct redlock_lease **gate)) {
    struct redlock_permits *permits = redlock_handle_permits(lease);
    const struct redlock_slots *slots = redlock_target_slots(lease->target);
    permits->stepped = stepped;
    permits->ask_gate = ask;
    permits->arrival_us = in_order ? redlock_line_arrive(&lease->group->line, now_ns) : 0;
    redlock_permits_init(&permits->core, slots->limit, slots->permits, lease->group->quorum, in_order,
                         (uint16_t *)(void *)(permits + 1));
}

void redlock_permits_adopt(struct redlock_lease *lease, const uint32_t *given) {
    struct redlock_slots *slots = redlock_target_slots(lease->target);
    for (unsigned i = 0; i < slots->permits; i++) {
        slots->numbers[i] = (uint16_t)given[i];
    }
    slots->taken = true;
}

void redlock_permits_told(struct redlock_lease *gate, unsigned node, uint64_t slot) {
    if (gate->life == REDLOCK_LIFE_OUT && gate->lost_cb) {
        struct redlock_lease *lease = gate->lost_data;
        struct redlock_permits_core *permits = &redlock_handle_permits(lease)->core;
        act(lease,
            redlock_permits_tell(permits, REDLOCK_NODE(node), slot < permits->limit ? (unsigned)slot : permits->limit),
            REDLOCK_OK);
    }
}
