/* What the monkey has asked for, and whether the results may be. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "monkey.h"
#include "support.h"

void monkey_complain(struct monkey *monkey, const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("VIOLATION after %llu requests: ", (unsigned long long)monkey->numbers);
    vprintf(format, list);
    printf("\nreplay: monkey --mode %s --seed %llu --trace\n", monkey->hostile ? "hostile" : "honest",
           (unsigned long long)monkey->seed);
    fflush(stdout);
    va_end(list);
    monkey->failed = true;
}

void monkey_trace(const struct monkey *monkey, const char *format, ...) {
    if (!monkey->tracing) {
        return;
    }
    va_list list;
    va_start(list, format);
    printf("%lld.%03lld ", (long long)(support_now_ns() / 1000000), (long long)(support_now_ns() / 1000 % 1000));
    vprintf(format, list);
    putchar('\n');
    va_end(list);
}

const char *monkey_resource(unsigned index) {
    static const char *const names[MONKEY_RESOURCES] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "a longer one", "\xff\r\n$-1\r\n"};
    return names[index];
}

/* --- Calls --- */

static const char *const call_names[CALL_KINDS] = {"acquire", "extend", "release", "inspect", "connect"};

struct call *call_begin(struct slot *slot, enum call_kind kind, unsigned resource) {
    struct monkey *monkey = slot->monkey;
    struct call *call;
    do {
        call = &monkey->calls[monkey->next_call++ % MONKEY_CALLS];
    } while (call->state == CALL_PENDING || call->state == CALL_MAKING);
    *call = (struct call){
        .slot = slot, .kind = kind, .state = CALL_MAKING, .number = ++monkey->numbers, .resource = resource};
    monkey->nested += monkey->depth > 0;
    monkey->inside = true;
    return call;
}

void call_made(struct call *call, int code) {
    struct monkey *monkey = call->slot->monkey;
    monkey->inside = false;
    monkey_trace(monkey, "%llu %s %s at %d: %s%s", (unsigned long long)call->number, call_names[call->kind],
                 monkey_resource(call->resource), (int)(call->slot - monkey->slots), redlock_error_name(code),
                 monkey->depth > 0 ? ", in a callback" : "");
    if (code != REDLOCK_OK) {
        call->state = CALL_REFUSED;
        return;
    }
    call->state = CALL_PENDING;
    call->slot->pending++;
    monkey->pending++;
}

void call_is_blind(struct call *call) {
    call->state = CALL_DONE;
    call->slot->pending--;
    call->slot->anonymous++;
    call->slot->monkey->pending--;
}

static bool may_end_with(const struct call *call, int code) {
    const bool closing = call->slot->state != SLOT_OPEN;
    switch (code) {
    case REDLOCK_OK:
        return call->kind != CALL_ACQUIRE || !(closing || call->cancelled);
    case REDLOCK_ERR_NO_QUORUM:
        return true;
    case REDLOCK_ERR_CLOSED:
        return closing;
    case REDLOCK_ERR_CONTENDED:
        return call->kind == CALL_ACQUIRE;
    case REDLOCK_ERR_TOO_SLOW:
        return call->kind == CALL_ACQUIRE || call->kind == CALL_EXTEND;
    case REDLOCK_ERR_LOST:
        return call->kind == CALL_EXTEND || call->kind == CALL_RELEASE;
    case REDLOCK_ERR_CANCELLED:
        return call->kind == CALL_ACQUIRE
                   ? call->cancelled
                   : call->kind == CALL_EXTEND && (closing || call->holding->state == HOLDING_ENDED);
    default:
        return false;
    }
}

/* Reads all parts of a result, so that a sanitizer finds what was freed. */
static void read_result(struct monkey *monkey, const struct call *call, const redlock_result *result) {
    char message[512];
    const char *resource = call->kind == CALL_CONNECT ? "" : monkey_resource(call->resource);
    if (strcmp(redlock_result_resource(result), resource) != 0) {
        monkey_complain(monkey, "the result of %llu is about \"%s\"", (unsigned long long)call->number,
                        redlock_result_resource(result));
    }
    size_t letters = redlock_result_message(result, message, sizeof message);
    for (size_t i = 0; i < redlock_result_vote_count(result); i++) {
        redlock_vote vote = {.size = sizeof vote};
        if (redlock_result_vote(result, i, &vote) != REDLOCK_OK) {
            monkey_complain(monkey, "vote %zu cannot be read", i);
            return;
        }
        letters += strlen(vote.node) + strlen(vote.error) + strlen(vote.holder);
    }
    if (letters == 0 || redlock_result_vote_count(result) != monkey->node_count) {
        monkey_complain(monkey, "the result of %llu is empty or has %zu votes", (unsigned long long)call->number,
                        redlock_result_vote_count(result));
    }
}

static void keep_result(struct monkey *monkey, const redlock_result *result) {
    if (!sim_random_percent(&monkey->acts, 5)) {
        return;
    }
    redlock_result **kept = &monkey->kept[sim_random_below(&monkey->acts, MONKEY_KEPT)];
    redlock_result_free(*kept);
    *kept = redlock_result_copy(result);
}

static void take_lease(struct call *call, const redlock_result *result) {
    struct monkey *monkey = call->slot->monkey;
    struct holding *holding = call->holding;
    holding_begin(holding, redlock_result_lease(result));
    holding->was_valid = true;
    const uint64_t fence = redlock_lease_fence(holding->lease);
    monkey_trace(monkey, "%llu has %s by %s, fence %llu, %lld ms", (unsigned long long)call->number,
                 monkey_resource(call->resource), holding->token, (unsigned long long)fence,
                 (long long)redlock_lease_validity_ms(holding->lease));
    if ((fence != 0) != call->fencing) {
        monkey_complain(monkey, "fencing asked for: %d, and the token is %llu", call->fencing,
                        (unsigned long long)fence);
    }
    monkey_check_exclusion(monkey, call->resource);
    if (fence != 0 && !monkey->hostile) {
        if (fence <= monkey->fence_highest[call->resource]) {
            monkey_complain(monkey, "fencing token %llu of %s comes after %llu", (unsigned long long)fence,
                            monkey_resource(call->resource), (unsigned long long)monkey->fence_highest[call->resource]);
        }
        monkey->fence_highest[call->resource] = fence;
    }
}

static void take_end(struct call *call, int code) {
    struct holding *holding = call->holding;
    if (call->kind == CALL_ACQUIRE && code != REDLOCK_OK) {
        holding->state = HOLDING_ENDED;
    } else if (call->kind == CALL_EXTEND) {
        holding->extending = false;
        holding->lost |= code == REDLOCK_ERR_LOST && holding->state == HOLDING_LIVE;
        monkey_check_exclusion(call->slot->monkey, call->resource);
    }
}

/* In a callback any call is allowed, most likely with this lease. */
static void act_inside(struct monkey *monkey, struct holding *concerned) {
    if (monkey->calm) {
        monkey_let_go(monkey); /* of a lease that was acquired just now */
        return;
    }
    for (uint32_t acts = sim_random_below(&monkey->acts, 6); acts > 2 && !monkey->quiet; acts--) {
        monkey_act(monkey, concerned);
    }
}

void call_done(const redlock_result *result, void *data) {
    struct call *call = data;
    struct monkey *monkey = call->slot->monkey;
    const int code = redlock_result_code(result);
    monkey_trace(monkey, "%llu %s %s returns %s", (unsigned long long)call->number, call_names[call->kind],
                 monkey_resource(call->resource), redlock_error_name(code));
    if (monkey->inside || call->state == CALL_MAKING) {
        monkey_complain(monkey, "%s %llu completed inside a call", call_names[call->kind],
                        (unsigned long long)call->number);
        return;
    }
    if (call->state != CALL_PENDING) {
        monkey_complain(monkey, "%s %llu completed %s", call_names[call->kind], (unsigned long long)call->number,
                        call->state == CALL_DONE ? "twice" : "although it was refused");
        return;
    }
    call->state = CALL_DONE;
    call->slot->pending--;
    monkey->pending--;
    monkey->completed[call->kind]++;
    monkey->succeeded[call->kind] += code == REDLOCK_OK;
    if (call->slot->state == SLOT_FREE) {
        monkey_complain(monkey, "%s %llu completed after its manager", call_names[call->kind],
                        (unsigned long long)call->number);
    }
    if (!may_end_with(call, code)) {
        monkey_complain(monkey, "%s %llu ended with %s%s", call_names[call->kind], (unsigned long long)call->number,
                        redlock_error_name(code), call->cancelled ? ", cancelled" : "");
    }
    const bool has_lease = call->kind == CALL_ACQUIRE && code == REDLOCK_OK;
    if ((redlock_result_lease(result) != NULL) != has_lease) {
        monkey_complain(monkey, "%s with %s has a lease or lacks it", call_names[call->kind], redlock_error_name(code));
        return;
    }
    monkey->depth++;
    if (call->slot->state == SLOT_OPEN || call->slot->state == SLOT_CLOSING) {
        monkey_check_statistics(call->slot);
    }
    read_result(monkey, call, result);
    if (has_lease) {
        take_lease(call, result);
    } else if (call->holding) {
        take_end(call, code);
    }
    keep_result(monkey, result);
    if (call->request && sim_random_percent(&monkey->acts, 10)) {
        redlock_request_cancel(call->request); /* the handle is still valid; it changes nothing */
    }
    act_inside(monkey, call->holding);
    read_result(monkey, call, result); /* it is valid whatever was called meanwhile */
    monkey->depth--;
}

/* --- Holdings --- */

struct holding *holding_new(struct slot *slot, unsigned resource, int64_t ttl_ms) {
    struct monkey *monkey = slot->monkey;
    struct holding *holding;
    do {
        holding = &monkey->holdings[monkey->next_holding++ % MONKEY_HOLDINGS];
    } while (holding->state == HOLDING_ASKED || holding->state == HOLDING_LIVE);
    *holding = (struct holding){.slot = slot, .state = HOLDING_ASKED, .resource = resource, .ttl_longest_ms = ttl_ms};
    return holding;
}

void holding_begin(struct holding *holding, redlock_lease *lease) {
    struct monkey *monkey = holding->slot->monkey;
    if (strcmp(redlock_lease_resource(lease), monkey_resource(holding->resource)) != 0) {
        monkey_complain(monkey, "the lease is of \"%s\"", redlock_lease_resource(lease));
    }
    holding->state = HOLDING_LIVE;
    holding->lease = lease;
    snprintf(holding->token, sizeof holding->token, "%s", redlock_lease_token(lease));
    if (monkey->live_count == MONKEY_LIVE_MAX) {
        support_fatal("more than %d leases at once", MONKEY_LIVE_MAX);
    }
    holding->live_index = monkey->live_count;
    monkey->live[monkey->live_count++] = holding;
}

void holding_end(struct holding *holding) {
    struct monkey *monkey = holding->slot->monkey;
    struct holding *last = monkey->live[--monkey->live_count];
    monkey->live[holding->live_index] = last;
    last->live_index = holding->live_index;
    holding->state = HOLDING_ENDED;
    holding->lease = NULL;
}

int64_t holding_look(struct holding *holding) {
    const int64_t validity_ms = redlock_lease_validity_ms(holding->lease);
    if (validity_ms > 0 && (holding->lost || validity_ms >= holding->ttl_longest_ms)) {
        monkey_complain(holding->slot->monkey, "a lease of %lld ms%s has %lld ms left",
                        (long long)holding->ttl_longest_ms, holding->lost ? ", which is lost," : "",
                        (long long)validity_ms);
    }
    holding->was_valid |= validity_ms > 0;
    return validity_ms;
}

bool holding_will_be_lost(struct holding *holding) {
    const bool ends = holding_look(holding) == 0 || !holding->renews;
    return ends && holding->was_valid && holding->listens && !holding->saw_lost;
}

void holding_lost(redlock_lease *lease, const char *reason, void *data) {
    struct holding *holding = data;
    struct monkey *monkey = holding->slot->monkey;
    monkey_trace(monkey, "lost %s by %s: %s", monkey_resource(holding->resource), holding->token, reason);
    if (monkey->inside || holding->state != HOLDING_LIVE || holding->lease != lease || holding->saw_lost ||
        *reason == '\0') {
        monkey_complain(monkey, "on_lost of a handle in state %d, ran before: %d, inside a call: %d: %s",
                        (int)holding->state, holding->saw_lost, monkey->inside, reason);
        return;
    }
    holding->lost = holding->saw_lost = true;
    monkey->losses++;
    monkey->depth++;
    holding_look(holding);
    act_inside(monkey, holding);
    monkey->depth--;
}

void monkey_check_exclusion(struct monkey *monkey, unsigned resource) {
    const struct holding *valid = NULL;
    for (size_t i = 0; i < monkey->live_count; i++) {
        struct holding *holding = monkey->live[i];
        if (holding->resource != resource || holding_look(holding) == 0) {
            continue;
        }
        if (valid && !monkey->hostile && strcmp(valid->token, holding->token) != 0) {
            monkey_complain(monkey, "%s and %s both hold %s", valid->token, holding->token, monkey_resource(resource));
        }
        valid = holding;
    }
}

/* --- Managers --- */

void monkey_check_statistics(struct slot *slot) {
    redlock_statistics statistics = {.size = sizeof statistics};
    if (redlock_manager_statistics(slot->manager, &statistics) != REDLOCK_OK) {
        monkey_complain(slot->monkey, "no statistics");
    } else if (statistics.requests_pending < slot->pending ||
               statistics.requests_pending > slot->pending + slot->anonymous) {
        monkey_complain(slot->monkey, "%llu requests are pending, not %u (and up to %u without a callback)",
                        (unsigned long long)statistics.requests_pending, slot->pending, slot->anonymous);
    }
}

/* A token of ours is 32 hexadecimal digits; a hash of a script or a run_id has 40. */
static bool has_token(const char *line) {
    size_t digits = 0;
    for (const char *at = line;; at++) {
        if (isdigit((unsigned char)*at) || (*at >= 'a' && *at <= 'f')) {
            digits++;
            continue;
        }
        if (digits == 32) {
            return true;
        }
        if (*at == '\0') {
            return false;
        }
        digits = 0;
    }
}

void monkey_log(redlock_log_level level, const char *line, void *data) {
    struct monkey *monkey = data;
    monkey->log_lines++;
    monkey_trace(monkey, "log %d %s", (int)level, line);
    if (!monkey->hostile && has_token(line)) {
        monkey_complain(monkey, "the log has a token: %s", line);
    }
}
