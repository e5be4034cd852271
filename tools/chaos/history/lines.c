/* Lines of files of events, in memory, and in order of time. */
#include "history/lines.h"

#include <stdlib.h>

#include "history/history_lists.h"

enum chaos_next chaos_lines_next(struct chaos_lines *lines, FILE *in) {
    struct chaos_line line = {.number = ++lines->read};
    size_t room = 0;
    ssize_t length = getline(&line.text, &room, in);
    if (length <= 0 || line.text[length - 1] != '\n') {
        free(line.text);
        return feof(in) && !ferror(in) ? CHAOS_NEXT_END : CHAOS_NEXT_BROKEN;
    }
    line.length = (size_t)length;
    chaos_add(&lines->at, &lines->count, &line, sizeof line);
    return CHAOS_NEXT_LINE;
}

void chaos_lines_drop(struct chaos_lines *lines) {
    free(lines->at[--lines->count].text);
}

static int by_time(const void *left, const void *right) {
    const struct chaos_line *a = left, *b = right;
    int order = chaos_order_by(a->pass, b->pass, a->t_us, b->t_us);
    return order != 0 ? order : chaos_order_by(a->rank, b->rank, (int64_t)a->number, (int64_t)b->number);
}

void chaos_lines_sort(struct chaos_lines *lines) {
    chaos_sort(lines->at, lines->count, sizeof *lines->at, by_time);
}

void chaos_lines_clear(struct chaos_lines *lines) {
    while (lines->count > 0) {
        chaos_lines_drop(lines);
    }
    free(lines->at);
    *lines = (struct chaos_lines){0};
}
