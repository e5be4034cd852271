/* Judges a history: all checks, and what they share. */
#include "checks/check.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/check_parts.h"

const char *chaos_violation_name(enum chaos_violation_kind kind) {
    static const char *const names[] = {
#define CHAOS_X(constant, name, meaning) name,
        CHAOS_VIOLATION_MAP(CHAOS_X)
#undef CHAOS_X
    };
    assert(kind < CHAOS_VIOLATION_KINDS);
    return names[kind];
}

const char *chaos_violation_meaning(enum chaos_violation_kind kind) {
    static const char *const meanings[] = {
#define CHAOS_X(constant, name, meaning) meaning,
        CHAOS_VIOLATION_MAP(CHAOS_X)
#undef CHAOS_X
    };
    assert(kind < CHAOS_VIOLATION_KINDS);
    return meanings[kind];
}

static void take_later(int64_t *end_us, int64_t at_us) {
    *end_us = at_us > *end_us ? at_us : *end_us;
}

int64_t chaos_history_end_us(const struct chaos_history *history) {
    if (history->finish_us != CHAOS_NEVER_US) {
        return history->finish_us;
    }
    int64_t end_us = history->start_us;
    for (size_t i = 0; i < history->operation_count; i++) {
        take_later(&end_us, history->operations[i].invoked_us);
        take_later(&end_us, history->operations[i].completed_us);
    }
    for (size_t i = 0; i < history->lease_count; i++) {
        take_later(&end_us, history->leases[i].from_us);
        take_later(&end_us, history->leases[i].ended_us);
    }
    for (size_t i = 0; i < history->sweep_count; i++) {
        take_later(&end_us, history->sweeps[i].to_us);
    }
    for (size_t i = 0; i < history->band_count; i++) {
        take_later(&end_us, history->bands[i].from_us);
        take_later(&end_us, history->bands[i].to_us);
    }
    for (size_t i = 0; i < history->life_count; i++) {
        take_later(&end_us, history->lives[i].ended_us);
    }
    return end_us;
}

int chaos_compare_times(const void *a, const void *b) {
    return chaos_order(*(const int64_t *)a, *(const int64_t *)b);
}

void *chaos_sorted(const void *list, size_t count, size_t size, int (*order)(const void *, const void *)) {
    char *items = malloc((count + 1) * sizeof list);
    for (size_t i = 0; items != NULL && i < count; i++) {
        const void *item = (const char *)list + i * size;
        memcpy(items + i * sizeof item, &item, sizeof item);
    }
    if (items != NULL) {
        qsort(items, count, sizeof list, order);
    }
    return items;
}

static int compare_lives(const void *a, const void *b) {
    const struct chaos_life *x = *(const struct chaos_life *const *)a, *y = *(const struct chaos_life *const *)b;
    return chaos_order_by(x->client, y->client, x->spawned_us, y->spawned_us);
}

const struct chaos_life *chaos_case_life(const struct chaos_case *c, int client, int64_t at_us) {
    /* The first that comes after, by halves. */
    size_t low = 0, high = c->history->life_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct chaos_life *life = c->lives[middle];
        if (life->client < client || (life->client == client && life->spawned_us <= at_us)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && c->lives[low - 1]->client == client ? c->lives[low - 1] : NULL;
}

/*
 * A lease is relied on from its first claim until its latest promise; not beyond its end (a release
 * has begun, or its owner has seen that it is lost: then the library deletes the keys, and others
 * may have them), and not beyond the death of its process.
 */
static int64_t relied_until(const struct chaos_case *c, const struct chaos_lease *lease) {
    int64_t until_us = lease->until_us;
    if (lease->ended_us != CHAOS_NEVER_US && lease->ended_us < until_us) {
        until_us = lease->ended_us;
    }
    const struct chaos_life *life = chaos_case_life(c, lease->client, lease->from_us);
    if (life != NULL && life->ended_us != CHAOS_NEVER_US && life->ended_us < until_us) {
        until_us = life->ended_us;
    }
    return until_us;
}

bool chaos_case_open(struct chaos_case *c, const struct chaos_history *history, int64_t slack_us,
                     struct chaos_verdict *verdict) {
    *c = (struct chaos_case){
        .history = history, .verdict = verdict, .slack_us = slack_us, .end_us = chaos_history_end_us(history)};
    c->lives = chaos_sorted(history->lives, history->life_count, sizeof *history->lives, compare_lives);
    c->relied_until_us = malloc((history->lease_count + 1) * sizeof *c->relied_until_us);
    if (c->lives == NULL || c->relied_until_us == NULL) {
        return false;
    }
    for (size_t i = 0; i < history->lease_count; i++) {
        c->relied_until_us[i] = relied_until(c, &history->leases[i]);
    }
    return true;
}

void chaos_case_close(struct chaos_case *c) {
    free(c->lives);
    free(c->relied_until_us);
    *c = (struct chaos_case){0};
}

bool chaos_case_add(struct chaos_case *c, struct chaos_violation violation, const char *format, ...) {
    struct chaos_verdict *verdict = c->verdict;
    size_t count = verdict->violation_count;
    /* The list has room for the next power of two. */
    if ((count & (count - 1)) == 0) {
        size_t capacity = count == 0 ? 1 : 2 * count;
        struct chaos_violation *grown = realloc(verdict->violations, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        verdict->violations = grown;
    }
    size_t size;
    FILE *out = open_memstream(&violation.text, &size);
    if (out == NULL) {
        return false;
    }
    if (violation.resource >= 0) {
        fprintf(out, "%s: ", c->history->resources[violation.resource]);
    }
    va_list arguments;
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    bool worked = ferror(out) == 0;
    if (fclose(out) != 0 || !worked) {
        free(violation.text);
        return false;
    }
    verdict->violations[verdict->violation_count++] = violation;
    verdict->counts[violation.kind]++;
    return true;
}

static int compare_violations(const void *a, const void *b) {
    const struct chaos_violation *x = a, *y = b;
    int order = chaos_order_by(x->from_us, y->from_us, x->kind, y->kind);
    return order != 0 ? order : strcmp(x->text, y->text);
}

bool chaos_check(const struct chaos_history *history, int64_t slack_us, struct chaos_verdict *verdict) {
    struct chaos_case c;
    *verdict = (struct chaos_verdict){0};
    bool worked = chaos_case_open(&c, history, slack_us, verdict) && chaos_check_overlap(&c) && chaos_check_keys(&c) &&
                  chaos_check_updates(&c) && chaos_check_operations(&c) && chaos_check_fence(&c) &&
                  chaos_check_record(&c) && chaos_figures(&c) && chaos_availability(&c);
    chaos_case_close(&c);
    if (!worked) {
        chaos_verdict_clear(verdict);
        return false;
    }
    if (verdict->violation_count > 0) {
        qsort(verdict->violations, verdict->violation_count, sizeof *verdict->violations, compare_violations);
    }
    return true;
}

void chaos_verdict_clear(struct chaos_verdict *verdict) {
    for (size_t i = 0; i < verdict->violation_count; i++) {
        free(verdict->violations[i].text);
    }
    free(verdict->violations);
    free(verdict->recoveries);
    *verdict = (struct chaos_verdict){0};
}
