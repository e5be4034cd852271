/* Lines of files of events, in memory, and in order of time. */
#include "history/lines.h"

#include <stdlib.h>

enum { ROOM_MIN = 1024 };

enum chaos_next chaos_lines_next(struct chaos_lines *lines, FILE *in) {
    /* Full at each power of two from ROOM_MIN on. */
    if (lines->count == 0 || (lines->count >= ROOM_MIN && (lines->count & (lines->count - 1)) == 0)) {
        size_t room = lines->count == 0 ? ROOM_MIN : lines->count * 2;
        struct chaos_line *grown = realloc(lines->at, room * sizeof *grown);
        if (grown == NULL) {
            return CHAOS_NEXT_NO_MEMORY;
        }
        lines->at = grown;
    }
    struct chaos_line line = {.number = ++lines->read};
    size_t room = 0;
    ssize_t length = getline(&line.text, &room, in);
    if (length <= 0 || line.text[length - 1] != '\n') {
        free(line.text);
        return feof(in) && !ferror(in) ? CHAOS_NEXT_END : CHAOS_NEXT_BROKEN;
    }
    line.length = (size_t)length;
    lines->at[lines->count++] = line;
    return CHAOS_NEXT_LINE;
}

void chaos_lines_drop(struct chaos_lines *lines) {
    free(lines->at[--lines->count].text);
}

static int by_time(const void *left, const void *right) {
    const struct chaos_line *a = left, *b = right;
    if (a->pass != b->pass) {
        return a->pass - b->pass;
    }
    if (a->t_us != b->t_us) {
        return a->t_us < b->t_us ? -1 : 1;
    }
    return a->rank != b->rank ? a->rank - b->rank : (a->number > b->number) - (a->number < b->number);
}

void chaos_lines_sort(struct chaos_lines *lines) {
    if (lines->count > 0) {
        qsort(lines->at, lines->count, sizeof *lines->at, by_time);
    }
}

void chaos_lines_clear(struct chaos_lines *lines) {
    while (lines->count > 0) {
        chaos_lines_drop(lines);
    }
    free(lines->at);
    *lines = (struct chaos_lines){0};
}
