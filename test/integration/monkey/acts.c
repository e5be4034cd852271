/* The calls that the monkey makes. */
#include <stdio.h>
#include <string.h>

#include "monkey.h"
#include "support.h"

#define PENDING_MAX 128
#define LIVE_ENOUGH 64

static struct slot *any_slot(struct monkey *monkey, bool closing_too) {
    struct slot *slot = &monkey->slots[sim_random_below(&monkey->acts, MONKEY_SLOTS)];
    return slot->state == SLOT_OPEN || (closing_too && slot->state == SLOT_CLOSING) ? slot : NULL;
}

static struct holding *any_holding(struct monkey *monkey) {
    return monkey->live_count > 0 ? monkey->live[sim_random_below(&monkey->acts, (uint32_t)monkey->live_count)] : NULL;
}

static unsigned any_resource(struct monkey *monkey) {
    return sim_random_below(&monkey->acts, MONKEY_RESOURCES);
}

/* Mostly some hundred ms; sometimes too short to succeed. */
static int64_t any_ttl_ms(struct sim_random *random) {
    return sim_random_percent(random, 5)    ? sim_random_between(random, 1, 10)
           : sim_random_percent(random, 50) ? sim_random_between(random, 20, 200)
                                            : sim_random_between(random, 200, 1500);
}

static void expect(struct call *call, int code, int expected) {
    if (code != expected) {
        monkey_complain(call->slot->monkey, "call %llu returned %s, not %s", (unsigned long long)call->number,
                        redlock_error_name(code), redlock_error_name(expected));
    }
}

/* Arguments are checked first, then whether the manager is open. */
static int expected_code(const struct slot *slot, bool valid) {
    return !valid ? REDLOCK_ERR_INVALID : slot->state == SLOT_OPEN ? REDLOCK_OK : REDLOCK_ERR_CLOSED;
}

/* --- Acquire, adopt --- */

static void draw_acquire_options(struct monkey *monkey, redlock_acquire_options *options) {
    struct sim_random *random = &monkey->acts;
    redlock_acquire_options_default(options);
    options->ttl_ms = any_ttl_ms(random);
    options->wait_timeout_ms = sim_random_percent(random, 50)   ? 0
                               : sim_random_percent(random, 90) ? sim_random_between(random, 1, 400)
                                                                : REDLOCK_WAIT_FOREVER;
    options->retry_delay_min_ms = sim_random_between(random, 0, 10);
    options->retry_delay_max_ms = options->retry_delay_min_ms + sim_random_between(random, 1, 40);
    options->auto_extend = sim_random_percent(random, 40);
    options->auto_extend_max_ms = sim_random_percent(random, 70) ? 0 : sim_random_between(random, 1, 2000);
    options->fencing = sim_random_percent(random, 50);
    options->heal = sim_random_percent(random, 70);
    options->lock_delay_ms = sim_random_percent(random, 80) ? 0 : sim_random_between(random, 1, 200);
    options->on_lost = sim_random_percent(random, 90) ? holding_lost : NULL;
}

static void acquire(struct monkey *monkey) {
    struct slot *slot = any_slot(monkey, true);
    if (!slot || monkey->pending >= PENDING_MAX || monkey->live_count >= LIVE_ENOUGH) {
        return;
    }
    redlock_acquire_options options;
    draw_acquire_options(monkey, &options);
    const bool empty = sim_random_percent(&monkey->acts, 1);
    const bool valid = !empty && options.ttl_ms + options.lock_delay_ms <= slot->ttl_max_ms;
    struct call *call = call_begin(slot, CALL_ACQUIRE, any_resource(monkey));
    call->holding = holding_new(slot, call->resource, options.ttl_ms);
    call->fencing = options.fencing;
    call->holding->listens = options.on_lost != NULL;
    call->holding->renews = options.auto_extend;
    options.lost_data = call->holding;
    const int code = redlock_acquire(slot->manager, empty ? "" : monkey_resource(call->resource), &options,
                                     sim_random_percent(&monkey->acts, 80) ? &call->request : NULL, call_done, call);
    call_made(call, code);
    expect(call, code, expected_code(slot, valid));
    if (code != REDLOCK_OK) {
        call->holding->state = HOLDING_ENDED;
    }
}

/* Many at once, for one turn of the loop. */
static void burst(struct monkey *monkey) {
    for (uint32_t left = sim_random_below(&monkey->acts, 40); left > 0; left--) {
        acquire(monkey);
    }
}

static void cancel(struct monkey *monkey, struct call *call) {
    monkey_trace(monkey, "%llu cancel", (unsigned long long)call->number);
    monkey->inside = true;
    redlock_request_cancel(call->request);
    monkey->inside = false;
    call->cancelled = true;
    monkey->cancels++;
}

/* One of the last calls. A completed call has no request any more. */
static void cancel_any(struct monkey *monkey) {
    const size_t back = 1 + sim_random_below(&monkey->acts, 2 * PENDING_MAX);
    struct call *call = &monkey->calls[(monkey->next_call - back) % MONKEY_CALLS];
    if (call->state == CALL_PENDING && call->request) {
        cancel(monkey, call);
    }
}

/* In an honest run only a token that nobody uses, because two handles with one token share a lock
 * that either may release. An unknown token finds nothing. */
static void draw_token(struct monkey *monkey, struct forgotten *wanted) {
    const struct holding *twin = any_holding(monkey);
    snprintf(wanted->token, sizeof wanted->token, "stranger-%llx", (unsigned long long)sim_random_next(&monkey->acts));
    wanted->resource = any_resource(monkey);
    if (monkey->hostile && twin && sim_random_percent(&monkey->acts, 30)) {
        wanted->resource = twin->resource;
        memcpy(wanted->token, twin->token, sizeof wanted->token);
    } else if (monkey->forgotten_count > 0 && sim_random_percent(&monkey->acts, 80)) {
        *wanted = monkey->forgotten[--monkey->forgotten_count];
    }
}

static void adopt(struct monkey *monkey) {
    struct slot *slot = any_slot(monkey, true);
    if (!slot || monkey->live_count >= LIVE_ENOUGH) {
        return;
    }
    struct forgotten wanted;
    redlock_acquire_options options;
    redlock_lease *lease = NULL;
    draw_token(monkey, &wanted);
    draw_acquire_options(monkey, &options);
    struct holding *holding = holding_new(slot, wanted.resource, options.ttl_ms);
    holding->listens = options.on_lost != NULL;
    holding->renews = options.auto_extend;
    options.lost_data = holding;
    monkey->inside = true;
    const int code = redlock_adopt(slot->manager, monkey_resource(wanted.resource), wanted.token, &options, &lease);
    monkey->inside = false;
    monkey_trace(monkey, "adopt %s by %s: %s", monkey_resource(wanted.resource), wanted.token,
                 redlock_error_name(code));
    const bool valid = options.ttl_ms + options.lock_delay_ms <= slot->ttl_max_ms;
    if (code != expected_code(slot, valid)) {
        monkey_complain(monkey, "adopt returned %s", redlock_error_name(code));
    }
    if (code != REDLOCK_OK) {
        holding->state = HOLDING_ENDED;
        return;
    }
    holding_begin(holding, lease);
    monkey->adopts++;
    if (strcmp(holding->token, wanted.token) != 0 || holding_look(holding) != 0 || redlock_lease_fence(lease) != 0) {
        monkey_complain(monkey, "an adopted lease begins with the token %s and %lld ms", holding->token,
                        (long long)holding_look(holding));
    }
}

/* --- Calls with a lease --- */

static void extend(struct monkey *monkey, struct holding *holding) {
    const bool blind = sim_random_percent(&monkey->acts, 10);
    const bool valid = !sim_random_percent(&monkey->acts, 2);
    const int64_t ttl_ms = valid ? any_ttl_ms(&monkey->acts) : 0;
    struct slot *slot = holding->slot;
    const int64_t validity_ms = holding_look(holding);
    const int64_t longest_ms = holding->ttl_longest_ms;
    const bool was_extending = holding->extending;
    struct call *call = call_begin(slot, CALL_EXTEND, holding->resource);
    call->holding = holding;
    holding->ttl_longest_ms = ttl_ms > longest_ms ? ttl_ms : longest_ms;
    const int code = redlock_extend(holding->lease, ttl_ms, blind ? NULL : call_done, blind ? NULL : call);
    call_made(call, code);
    switch (code) {
    case REDLOCK_OK:
        if (!valid || was_extending || holding->lost) {
            monkey_complain(monkey, "extend of %lld ms was accepted; extending: %d, lost: %d", (long long)ttl_ms,
                            was_extending, holding->lost);
        }
        holding->extending |= !blind;
        holding->extending_blind |= blind;
        break;
    case REDLOCK_ERR_BUSY:
        expect(call, code, was_extending || holding->extending_blind ? REDLOCK_ERR_BUSY : REDLOCK_OK);
        break;
    case REDLOCK_ERR_LOST:
        expect(call, code, validity_ms == 0 || redlock_lease_validity_ms(holding->lease) == 0 ? code : REDLOCK_OK);
        break;
    default: /* with a lock delay, the ttl must be less than ttl_max */
        expect(call, code, !valid || ttl_ms + 200 > slot->ttl_max_ms ? REDLOCK_ERR_INVALID : REDLOCK_OK);
    }
    if (code != REDLOCK_OK) {
        holding->ttl_longest_ms = longest_ms;
    } else if (blind) {
        call_is_blind(call);
    }
}

static void release(struct monkey *monkey, struct holding *holding) {
    const bool blind = sim_random_percent(&monkey->acts, 20);
    struct slot *slot = holding->slot;
    struct call *call = call_begin(slot, CALL_RELEASE, holding->resource);
    redlock_lease *lease = holding->lease;
    call->holding = holding;
    holding_end(holding);
    const int code = redlock_release(lease, blind ? NULL : call_done, blind ? NULL : call);
    call_made(call, code);
    expect(call, code, REDLOCK_OK);
    if (blind && code == REDLOCK_OK) {
        call_is_blind(call);
    }
}

static void forget(struct monkey *monkey, struct holding *holding) {
    redlock_lease *lease = holding->lease;
    struct forgotten *forgotten =
        &monkey->forgotten[monkey->forgotten_count < MONKEY_FORGOTTEN ? monkey->forgotten_count++ : 0];
    forgotten->resource = holding->resource;
    memcpy(forgotten->token, holding->token, sizeof forgotten->token);
    monkey_trace(monkey, "forget %s by %s", monkey_resource(holding->resource), holding->token);
    holding_end(holding);
    monkey->inside = true;
    redlock_lease_forget(lease);
    monkey->inside = false;
    monkey->forgets++;
}

static void use_lease(struct monkey *monkey, struct holding *holding) {
    if (!holding) {
        return;
    }
    const uint32_t drawn = sim_random_below(&monkey->acts, 100);
    if (drawn < 35) {
        extend(monkey, holding);
    } else if (drawn < 60) {
        release(monkey, holding);
    } else if (drawn < 67) {
        forget(monkey, holding);
    } else if (strcmp(redlock_lease_token(holding->lease), holding->token) != 0 ||
               strcmp(redlock_lease_resource(holding->lease), monkey_resource(holding->resource)) != 0) {
        monkey_complain(monkey, "the token of a lease has changed to %s", redlock_lease_token(holding->lease));
    } else {
        monkey_check_exclusion(monkey, holding->resource);
    }
}

/* --- Questions --- */

static void inspect(struct monkey *monkey) {
    struct slot *slot = any_slot(monkey, true);
    if (!slot || monkey->pending >= PENDING_MAX) {
        return;
    }
    struct call *call = call_begin(slot, CALL_INSPECT, any_resource(monkey));
    const int code = redlock_inspect(slot->manager, monkey_resource(call->resource), call_done, call);
    call_made(call, code);
    expect(call, code, expected_code(slot, true));
}

static void connect_nodes(struct monkey *monkey) {
    struct slot *slot = any_slot(monkey, true);
    if (!slot || monkey->pending >= PENDING_MAX) {
        return;
    }
    struct call *call = call_begin(slot, CALL_CONNECT, 0);
    const int64_t timeout_ms = sim_random_percent(&monkey->acts, 5) ? -1 : sim_random_between(&monkey->acts, 0, 300);
    const int code = redlock_manager_connect(slot->manager, timeout_ms, call_done, call);
    call_made(call, code);
    expect(call, code, expected_code(slot, timeout_ms >= 0));
}

static void ask_manager(struct monkey *monkey) {
    struct slot *slot = any_slot(monkey, true);
    if (!slot) {
        return;
    }
    monkey_check_statistics(slot);
    for (size_t i = 0; i <= redlock_manager_node_count(slot->manager); i++) {
        redlock_node_info info = {.size = sizeof info};
        const int code = redlock_manager_node(slot->manager, i, &info);
        if ((code == REDLOCK_OK) != (i < monkey->node_count) ||
            (code == REDLOCK_OK && (strlen(info.name) + strlen(info.version) + strlen(info.role) +
                                    strlen(info.warning) + strlen(info.error) + strlen(info.quarantine)) == 0)) {
            monkey_complain(monkey, "node %zu: %s", i, redlock_error_name(code));
        }
    }
}

static void drop_result(struct monkey *monkey) {
    redlock_result **kept = &monkey->kept[sim_random_below(&monkey->acts, MONKEY_KEPT)];
    char message[2048];
    redlock_result_message(*kept, message, sizeof message);
    redlock_result_free(*kept);
    *kept = NULL;
}

/* --- Managers --- */

/* By address or by name. Sometimes two nodes are the same server, which must not have two votes. */
static void draw_nodes(struct monkey *monkey, const char **nodes) {
    const bool by_name = sim_random_percent(&monkey->options, 20);
    for (unsigned i = 0; i < monkey->node_count; i++) {
        nodes[i] = by_name ? monkey->names[i] : monkey->uris[i];
    }
    if (sim_random_percent(&monkey->options, 10)) {
        nodes[1 + sim_random_below(&monkey->options, monkey->node_count - 1)] = monkey->twin_uri;
    }
}

void monkey_open(struct slot *slot) {
    struct monkey *monkey = slot->monkey;
    struct sim_random *random = &monkey->options;
    redlock_manager_options options;
    const char *nodes[MONKEY_NODES_MAX];
    char error[256] = "";
    redlock_manager_options_default(&options);
    draw_nodes(monkey, nodes);
    options.nodes = nodes;
    options.tls = monkey->tls;
    options.node_count = monkey->node_count;
    options.node_timeout_ms =
        sim_random_percent(random, 80) ? sim_random_between(random, 20, 120) : sim_random_between(random, 1, 10);
    options.connect_timeout_ms =
        sim_random_percent(random, 80) ? sim_random_between(random, 100, 1000) : sim_random_between(random, 1, 50);
    options.connect_timeout_ms += monkey->tls ? 500 : 0; /* two more round trips, and signatures */
    options.on_log = monkey_log;
    options.log_data = monkey;
    options.log_level = (redlock_log_level)sim_random_below(random, REDLOCK_LOG_DEBUG + 1);
    options.restart_guard = sim_random_percent(random, 60)
                                ? REDLOCK_RESTART_GUARD_OFF
                                : (redlock_restart_guard)sim_random_below(random, REDLOCK_RESTART_GUARD_STRICT + 1);
    options.clock_guard = sim_random_percent(random, 30);
    options.first_boot = sim_random_percent(random, 50);
    options.ttl_max_ms = sim_random_between(random, 50, 2000);
    options.fence_expiry_ms = monkey->fence_expiry_ms;
    options.holder = sim_random_percent(random, 50) ? "monkey@web-3:4711" : NULL;
    const bool guarded = options.restart_guard != REDLOCK_RESTART_GUARD_OFF || options.clock_guard;
    const int code = redlock_manager_create(monkey->loop, &options, &slot->manager, error, sizeof error);
    if (code != REDLOCK_OK) {
        monkey_complain(monkey, "redlock_manager_create: %s: %s", redlock_error_name(code), error);
        return;
    }
    slot->state = SLOT_OPEN;
    slot->ttl_max_ms = guarded ? options.ttl_max_ms : REDLOCK_TTL_MS_MAX;
    slot->pending = slot->anonymous = 0;
    monkey->managers++;
    monkey_trace(monkey, "manager %d: node timeout %lld, guards %d %d, ttl_max %lld", (int)(slot - monkey->slots),
                 (long long)options.node_timeout_ms, (int)options.restart_guard, options.clock_guard,
                 (long long)slot->ttl_max_ms);
}

static void closed(void *data) {
    struct slot *slot = data;
    struct monkey *monkey = slot->monkey;
    monkey_trace(monkey, "manager %d is closed", (int)(slot - monkey->slots));
    if (monkey->inside || slot->state != SLOT_CLOSING || slot->pending > 0) {
        monkey_complain(monkey, "a manager in state %d is closed, with %u requests pending, inside a call: %d",
                        (int)slot->state, slot->pending, monkey->inside);
    }
    slot->state = SLOT_FREE;
    slot->manager = NULL;
    if (!monkey->quiet) {
        monkey->depth++;
        monkey_act(monkey, NULL);
        monkey->depth--;
    }
}

void monkey_close(struct slot *slot, bool blind) {
    struct monkey *monkey = slot->monkey;
    monkey_trace(monkey, "close manager %d%s", (int)(slot - monkey->slots), blind ? ", blind" : "");
    for (size_t i = monkey->live_count; i > 0; i--) {
        if (monkey->live[i - 1]->slot == slot) {
            holding_end(monkey->live[i - 1]); /* its handles end here, without on_lost */
        }
    }
    redlock_manager *manager = slot->manager;
    slot->state = blind ? SLOT_BLIND : SLOT_CLOSING;
    monkey->inside = true;
    const int code = redlock_manager_close(manager, blind ? NULL : closed, blind ? NULL : slot);
    const int again = blind ? REDLOCK_ERR_CLOSED : redlock_manager_close(manager, closed, slot);
    monkey->inside = false;
    slot->manager = blind ? NULL : manager;
    if (code != REDLOCK_OK || again != REDLOCK_ERR_CLOSED) {
        monkey_complain(monkey, "close returned %s, then %s", redlock_error_name(code), redlock_error_name(again));
    }
    monkey->closes_inside += monkey->depth > 0;
}

static void change_managers(struct monkey *monkey) {
    struct slot *slot = &monkey->slots[sim_random_below(&monkey->acts, MONKEY_SLOTS)];
    switch (slot->state) {
    case SLOT_OPEN:
        if (sim_random_percent(&monkey->acts, 5)) {
            monkey_close(slot, sim_random_percent(&monkey->acts, 10));
        }
        break;
    case SLOT_BLIND:
        if (slot->pending > 0) {
            break;
        }
        slot->state = SLOT_FREE;
        /* fall through */
    case SLOT_FREE:
        monkey_open(slot);
        break;
    case SLOT_CLOSING:
        break;
    }
}

void monkey_act(struct monkey *monkey, struct holding *concerned) {
    const uint32_t drawn = sim_random_below(&monkey->acts, 1000);
    const bool of_this = concerned && concerned->state == HOLDING_LIVE && sim_random_percent(&monkey->acts, 50);
    if (monkey->failed) {
        return;
    }
    if (drawn < 420) {
        acquire(monkey);
    } else if (drawn < 425) {
        burst(monkey);
    } else if (drawn < 500) {
        cancel_any(monkey);
    } else if (drawn < 780 || monkey->live_count >= LIVE_ENOUGH) {
        use_lease(monkey, of_this ? concerned : any_holding(monkey));
    } else if (drawn < 800) {
        adopt(monkey);
    } else if (drawn < 880) {
        inspect(monkey);
    } else if (drawn < 910) {
        connect_nodes(monkey);
    } else if (drawn < 950) {
        ask_manager(monkey);
    } else if (drawn < 980) {
        drop_result(monkey);
    } else {
        change_managers(monkey);
    }
}

void monkey_let_go(struct monkey *monkey) {
    while (monkey->live_count > 0) {
        release(monkey, monkey->live[0]);
    }
}

void monkey_cancel_all(struct monkey *monkey) {
    for (size_t i = 0; i < MONKEY_CALLS; i++) {
        if (monkey->calls[i].state == CALL_PENDING && monkey->calls[i].request) {
            cancel(monkey, &monkey->calls[i]);
        }
    }
}
