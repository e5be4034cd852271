/* Joins the processes' files of events into one, by time. */
#include "history/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "history/lines.h"

static bool read_file(const char *path, struct chaos_lines *lines, char *error, size_t error_size) {
    FILE *in = fopen(path, "re");
    enum chaos_next next = CHAOS_NEXT_BROKEN;
    for (size_t number = 1; in != NULL && (next = chaos_lines_next(lines, in)) == CHAOS_NEXT_LINE; number++) {
        /* Every line begins with its time: chaos_log_event() writes it so. */
        struct chaos_line *line = &lines->at[lines->count - 1];
        if (sscanf(line->text, "{\"t\":%" SCNd64, &line->t_us) != 1) {
            snprintf(error, error_size, "%s:%zu: no event: its line does not begin with its time", path, number);
            break;
        }
    }
    if (next == CHAOS_NEXT_BROKEN) {
        snprintf(error, error_size, "cannot read %s: %s", path, strerror(errno));
    }
    if (in != NULL) {
        fclose(in);
    }
    return next == CHAOS_NEXT_END;
}

static bool write_file(const char *path, const struct chaos_lines *lines, char *error, size_t error_size) {
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
    if (!worked) {
        snprintf(error, error_size, "cannot write %s: %s", path, strerror(why));
    }
    return worked;
}

bool chaos_merge(const char *const *paths, size_t count, const char *out_path, char *error, size_t error_size) {
    struct chaos_lines lines = {0};
    bool worked = true;
    for (size_t i = 0; i < count && worked; i++) {
        worked = read_file(paths[i], &lines, error, error_size);
    }
    chaos_lines_sort(&lines);
    worked = worked && write_file(out_path, &lines, error, error_size);
    chaos_lines_clear(&lines);
    return worked;
}
