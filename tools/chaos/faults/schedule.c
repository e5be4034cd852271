/* Faults over time as text, and what can be said of them. */
#include "faults/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"
#include "faults/setup.h"

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

static bool parse_line(const char *line, size_t nodes, size_t clients, struct chaos_schedule *schedule,
                       struct chaos_error *error) {
    struct chaos_fault fault;
    size_t blank = strspn(line, " \t\r");
    if (line[blank] == '\0' || line[blank] == '#') {
        return true;
    }
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
    struct chaos_error why;
    char *lines = chaos_copy(text), *rest = lines;
    bool worked = true;
    for (size_t number = 1; worked && rest != NULL; number++) {
        worked = parse_line(strsep(&rest, "\n"), nodes, clients, &read, &why) ||
                 chaos_fail(error, "line %zu: %s", number, why.text);
    }
    free(lines);
    if (worked) {
        *schedule = read;
    } else {
        chaos_schedule_clear(&read);
    }
    return worked;
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

/* Of all clients at one moment. One that is told something new has the old until it has ended. */
struct setups {
    struct chaos_setup now[CHAOS_CLIENTS_MAX];
    size_t count;
};

static bool all_meet(const struct setups *setups, const struct chaos_setup *other) {
    for (size_t c = 0; c < setups->count; c++) {
        if (!chaos_setups_meet(&setups->now[c], other)) {
            return false;
        }
    }
    return true;
}

/* Whether two clients may run beside each other whose quorums need not share a node. What is told
 * at the begin is told before any client runs. */
static bool parts_clients(const struct chaos_schedule *schedule) {
    struct setups setups = {.count = 0};
    bool meet = true;
    CHAOS_EACH(const struct chaos_fault, fault, schedule->faults, schedule->count) {
        if (fault->kind != CHAOS_FAULT_CONFIGURE) {
            continue;
        }
        struct chaos_setup told = chaos_setup_of(fault);
        meet = meet && (fault->at_ms == 0 || all_meet(&setups, &told));
        for (size_t c = 0; c < CHAOS_CLIENTS_MAX; c++) {
            if (chaos_hits_client(fault, c)) {
                setups.now[c] = told;
                setups.count = setups.count > c ? setups.count : c + 1;
            }
        }
        meet = meet && (fault->at_ms > 0 || all_meet(&setups, &told));
    }
    return !meet;
}

bool chaos_schedule_breaks(const struct chaos_schedule *schedule, bool append_only) {
    CHAOS_EACH(const struct chaos_fault, fault, schedule->faults, schedule->count) {
        if (chaos_fault_breaks(fault, !append_only)) {
            return true;
        }
    }
    return parts_clients(schedule);
}
