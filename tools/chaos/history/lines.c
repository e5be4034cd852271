/* Lines of files of events, in memory, and in order of time. */
#include "history/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"

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

CHAOS_ORDER(by_time, chaos_line,
            chaos_order_then(chaos_order_by(x->pass, y->pass, x->t_us, y->t_us),
                             chaos_order_by(x->rank, y->rank, (int64_t)x->number, (int64_t)y->number)))

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

static bool read_file(const char *path, struct chaos_lines *lines, struct chaos_error *error) {
    FILE *in = fopen(path, "re");
    enum chaos_next next = CHAOS_NEXT_BROKEN;
    for (size_t number = 1; in != NULL && (next = chaos_lines_next(lines, in)) == CHAOS_NEXT_LINE; number++) {
        /* Every line begins with its time: chaos_log_event() writes it so. */
        struct chaos_line *line = &lines->at[lines->count - 1];
        if (sscanf(line->text, "{\"t\":%" SCNd64, &line->t_us) != 1) {
            chaos_fail(error, "%s:%zu: no event: its line does not begin with its time", path, number);
            break;
        }
    }
    if (next == CHAOS_NEXT_BROKEN) {
        chaos_fail(error, "cannot read %s: %s", path, strerror(errno));
    }
    if (in != NULL) {
        fclose(in);
    }
    return next == CHAOS_NEXT_END;
}

static bool write_file(const char *path, const struct chaos_lines *lines, struct chaos_error *error) {
    FILE *out = fopen(path, "we");
    for (size_t i = 0; out != NULL && i < lines->count; i++) {
        (void)fwrite(lines->at[i].text, 1, lines->at[i].length, out); /* ferror() tells */
    }
    bool worked = out != NULL && !ferror(out);
    int why = errno;
    if (out != NULL && fclose(out) != 0 && worked) {
        worked = false;
        why = errno;
    }
    return worked || chaos_fail(error, "cannot write %s: %s", path, strerror(why));
}

bool chaos_merge(const char *const *paths, size_t count, const char *out_path, struct chaos_error *error) {
    struct chaos_lines lines = {0};
    bool worked = true;
    for (size_t i = 0; i < count && worked; i++) {
        worked = read_file(paths[i], &lines, error);
    }
    chaos_lines_sort(&lines);
    worked = worked && write_file(out_path, &lines, error);
    chaos_lines_clear(&lines);
    return worked;
}
