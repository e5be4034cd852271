/* Judges a history: all checks, and what they share. */
#include "checks/check.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "checks/check_parts.h"

const struct chaos_violation_about chaos_violation_abouts[] = {
#define CHAOS_X(constant, name, meaning) {name, meaning},
    CHAOS_VIOLATION_MAP(CHAOS_X)
#undef CHAOS_X
};

int64_t chaos_history_end_us(const struct chaos_history *history) {
    if (history->finish_us != CHAOS_NEVER_US) {
        return history->finish_us;
    }
    int64_t end_us = history->start_us; /* CHAOS_NEVER_US is before all times */
    for (size_t i = 0; i < history->operation_count; i++) {
        end_us = chaos_most(end_us, history->operations[i].invoked_us);
        end_us = chaos_most(end_us, history->operations[i].completed_us);
    }
    for (size_t i = 0; i < history->lease_count; i++) {
        end_us = chaos_most(end_us, history->leases[i].from_us);
        end_us = chaos_most(end_us, history->leases[i].ended_us);
    }
    for (size_t i = 0; i < history->sweep_count; i++) {
        end_us = chaos_most(end_us, history->sweeps[i].to_us);
    }
    for (size_t i = 0; i < history->band_count; i++) {
        end_us = chaos_most(end_us, history->bands[i].from_us);
        end_us = chaos_most(end_us, history->bands[i].to_us);
    }
    for (size_t i = 0; i < history->life_count; i++) {
        end_us = chaos_most(end_us, history->lives[i].ended_us);
    }
    return end_us;
}

CHAOS_ORDER_OF(compare_lives, chaos_life, chaos_order_by(x->client, y->client, x->spawned_us, y->spawned_us))

const struct chaos_life *chaos_case_life(const struct chaos_case *c, int client, int64_t at_us) {
    const struct chaos_life *later = &(struct chaos_life){.client = client, .spawned_us = chaos_plus(at_us, 1)};
    size_t count = chaos_count_before(c->lives, c->history->life_count, sizeof *c->lives, &later, compare_lives);
    return count > 0 && c->lives[count - 1]->client == client ? c->lives[count - 1] : NULL;
}

/*
 * A lease is relied on from its first claim until its latest promise; not beyond its end (a release
 * has begun, or its owner has seen that it is lost: then the library deletes the keys, and others
 * may have them), and not beyond the death of its process.
 */
static int64_t relied_until(const struct chaos_case *c, const struct chaos_lease *lease) {
    const struct chaos_life *life = chaos_case_life(c, lease->client, lease->from_us);
    int64_t died_us = life == NULL ? INT64_MAX : chaos_over(life->ended_us, INT64_MAX);
    return chaos_least(chaos_least(lease->until_us, chaos_over(lease->ended_us, INT64_MAX)), died_us);
}

void chaos_case_open(struct chaos_case *c, const struct chaos_history *history, int64_t slack_us,
                     struct chaos_verdict *verdict) {
    *c = (struct chaos_case){
        .history = history, .verdict = verdict, .slack_us = slack_us, .end_us = chaos_history_end_us(history)};
    c->lives = chaos_sorted(history->lives, history->life_count, sizeof *history->lives, compare_lives);
    c->relied_until_us = chaos_allocate(history->lease_count, sizeof *c->relied_until_us);
    for (size_t i = 0; i < history->lease_count; i++) {
        c->relied_until_us[i] = relied_until(c, &history->leases[i]);
    }
}

void chaos_case_close(struct chaos_case *c) {
    free(c->lives);
    free(c->relied_until_us);
    *c = (struct chaos_case){0};
}

struct chaos_setup chaos_case_setup(const struct chaos_case *c, int client, int64_t at_us) {
    const struct chaos_life *life = chaos_case_life(c, client, at_us);
    return life != NULL && life->setup.nodes != 0 ? life->setup : chaos_setup_default(c->history->node_count);
}

void chaos_case_add(struct chaos_case *c, struct chaos_violation violation, const char *format, ...) {
    struct chaos_verdict *verdict = c->verdict;
    const char *resource = violation.resource < 0 ? "" : c->history->resources[violation.resource];
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0 ||
        asprintf(&violation.text, "%s%s%s", resource, violation.resource < 0 ? "" : ": ", text) < 0) {
        chaos_no_memory(strlen(format));
    }
    va_end(arguments);
    free(text);
    chaos_add(&verdict->violations, &verdict->violation_count, &violation, sizeof violation);
    verdict->counts[violation.kind]++;
}

CHAOS_ORDER(compare_violations, chaos_violation,
            chaos_order_then(chaos_order_by(x->from_us, y->from_us, x->kind, y->kind), strcmp(x->text, y->text)))

void chaos_check(const struct chaos_history *history, int64_t slack_us, struct chaos_verdict *verdict) {
    struct chaos_case c;
    *verdict = (struct chaos_verdict){0};
    chaos_case_open(&c, history, slack_us, verdict);
    chaos_check_overlap(&c);
    chaos_check_keys(&c);
    chaos_check_late_work(&c);
    chaos_check_updates(&c);
    chaos_check_operations(&c);
    chaos_check_fence(&c);
    chaos_check_order(&c);
    chaos_check_record(&c);
    chaos_figures(&c);
    chaos_availability(&c);
    chaos_case_close(&c);
    chaos_sort(verdict->violations, verdict->violation_count, sizeof *verdict->violations, compare_violations);
}

void chaos_verdict_clear(struct chaos_verdict *verdict) {
    for (size_t i = 0; i < verdict->violation_count; i++) {
        free(verdict->violations[i].text);
    }
    free(verdict->violations);
    free(verdict->recoveries);
    *verdict = (struct chaos_verdict){0};
}
