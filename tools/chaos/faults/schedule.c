/* Faults over time as text, and what can be said of them. */
#include "faults/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"

enum { FAULTS_MAX = 10000 };

void chaos_schedule_clear(struct chaos_schedule *schedule) {
    free(schedule->faults);
    *schedule = (struct chaos_schedule){0};
}

void chaos_schedule_add(struct chaos_schedule *schedule, const struct chaos_fault *fault) {
    size_t place = schedule->count;
    chaos_add(&schedule->faults, &schedule->count, fault, sizeof *fault);
    /* What is at one time stays in order. A schedule is written in order for the most part, and
     * short. */
    while (place > 0 && schedule->faults[place - 1].at_ms > fault->at_ms) {
        schedule->faults[place] = schedule->faults[place - 1];
        place--;
    }
    schedule->faults[place] = *fault;
}

static bool parse_line(const char *text, size_t length, size_t nodes, size_t clients, struct chaos_schedule *schedule,
                       struct chaos_error *error) {
    char line[CHAOS_FAULT_LINE_MAX];
    struct chaos_fault fault;
    size_t blank = strspn(text, " \t\r");
    if (blank >= length || text[blank] == '#') {
        return true;
    }
    if (length >= sizeof line) {
        return chaos_fail(error, "a fault's line of %zu bytes is too long; %d are enough for each", length,
                          CHAOS_FAULT_LINE_MAX - 1);
    }
    memcpy(line, text, length);
    line[length] = '\0';
    if (!chaos_fault_parse(line, nodes, clients, &fault, error)) {
        return false;
    }
    if (schedule->count == FAULTS_MAX) {
        return chaos_fail(error, "more than %d faults", FAULTS_MAX);
    }
    chaos_schedule_add(schedule, &fault);
    return true;
}

bool chaos_schedule_parse(const char *text, size_t nodes, size_t clients, struct chaos_schedule *schedule,
                          struct chaos_error *error) {
    struct chaos_schedule read = {0};
    for (size_t number = 1;; number++) {
        size_t length = strcspn(text, "\n");
        struct chaos_error why;
        if (!parse_line(text, length, nodes, clients, &read, &why)) {
            chaos_fail(error, "line %zu: %s", number, why.text);
            chaos_schedule_clear(&read);
            return false;
        }
        if (text[length] == '\0') {
            break;
        }
        text += length + 1;
    }
    *schedule = read;
    return true;
}

char *chaos_schedule_format(const struct chaos_schedule *schedule, size_t nodes, size_t clients) {
    char *text = chaos_allocate(schedule->count * (CHAOS_FAULT_LINE_MAX + 1) + 1, 1), *at = text;
    for (size_t i = 0; i < schedule->count; i++) {
        chaos_fault_format(&schedule->faults[i], nodes, clients, true, at, CHAOS_FAULT_LINE_MAX);
        at += strlen(at);
        *at++ = '\n';
    }
    *at = '\0';
    return text;
}

bool chaos_schedule_breaks(const struct chaos_schedule *schedule, bool append_only) {
    for (size_t i = 0; i < schedule->count; i++) {
        const struct chaos_fault *fault = &schedule->faults[i];
        enum chaos_fault_kind kind = fault->kind;
        if ((chaos_fault_about(kind)->breaks && !chaos_fault_is_within_drift(fault)) ||
            (kind == CHAOS_FAULT_KILL && !append_only)) {
            return true;
        }
    }
    return false;
}

int64_t chaos_fault_end_ms(const struct chaos_fault *fault) {
    bool for_amount = fault->kind == CHAOS_FAULT_SLOW || fault->kind == CHAOS_FAULT_BUSY;
    return fault->at_ms + (for_amount ? fault->amount : fault->for_ms);
}
