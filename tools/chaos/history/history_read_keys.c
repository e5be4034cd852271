/* What the auditor saw, read into a history. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"
#include "history/history_read.h"

/* [token, ms] */
static bool read_entry(const json_t *value, char *token, int64_t *left_ms) {
    const char *text;
    json_int_t left;
    if (json_unpack((json_t *)(uintptr_t)value, "[sI!]", &text, &left) != 0 || strlen(text) >= CHAOS_TOKEN_SIZE ||
        left < -1 || left > CHAOS_TIME_MAX_US / 1000) {
        return false;
    }
    strcpy(token, text);
    *left_ms = left;
    return true;
}

/* null, ["", 0], [token, pttl]; of a lock that is read, [[token, ms]…] */
static bool read_sight(const json_t *value, struct chaos_sight *sight) {
    size_t count = json_array_size(value);
    if (json_is_null(value)) {
        return true;
    }
    sight->answered = true;
    if (!json_is_array(json_array_get(value, 0))) {
        return read_entry(value, sight->token, &sight->pttl_ms);
    }
    sight->readers = chaos_allocate(count, sizeof *sight->readers);
    for (; sight->reader_count < count; sight->reader_count++) {
        struct chaos_reader *reader = &sight->readers[sight->reader_count];
        if (!read_entry(json_array_get(value, sight->reader_count), reader->token, &reader->left_ms) ||
            reader->left_ms < 0) {
            return false;
        }
    }
    return true;
}

/* [token…]; nothing where the node has no queue */
static bool read_line(const json_t *value, struct chaos_sight *sight) {
    size_t count = json_array_size(value);
    sight->line = count == 0 ? NULL : chaos_allocate(count, sizeof *sight->line);
    for (; sight->line_count < count; sight->line_count++) {
        const json_t *token = json_array_get(value, sight->line_count);
        if (!json_is_string(token) || json_string_length(token) >= CHAOS_TOKEN_SIZE) {
            return false;
        }
        snprintf(sight->line[sight->line_count], sizeof *sight->line, "%s", json_string_value(token));
    }
    return value == NULL || json_is_array(value);
}

void chaos_take_keys(struct chaos_reading *reading) {
    struct chaos_history *history = reading->history;
    size_t nodes = history->node_count;
    const json_t *list = chaos_get_list(reading, "nodes", nodes, nodes);
    struct chaos_sweep sweep = {.from_us = reading->t_us,
                                .to_us = chaos_get_number(reading, "to", reading->t_us, CHAOS_TIME_MAX_US),
                                .resource = chaos_get_resource(reading),
                                .nodes = chaos_allocate(nodes, sizeof *sweep.nodes)};
    chaos_add(&history->sweeps, &history->sweep_count, &sweep, sizeof sweep);
    for (size_t n = 0; n < json_array_size(list); n++) {
        if (!read_sight(json_array_get(list, n), &sweep.nodes[n])) {
            chaos_wrong_member(reading, "nodes", "a list of null, [\"\",0], [token,pttl] or [[token,ms]…]");
        }
        if (!read_line(json_array_get(json_object_get(reading->event, "lines"), n), &sweep.nodes[n])) {
            chaos_wrong_member(reading, "lines", "a list of lists of tokens");
        }
    }
}
