/* Joins the processes' files of events into one, by time. */
#include "history/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    int64_t t_us;
    size_t order; /* as it was read: what has one time stays in order */
    char *text;   /* with its newline */
    size_t length;
};

struct lines {
    struct line *at;
    size_t count;
    size_t room;
};

/* Every line begins with its time: chaos_log_event() writes it so. */
static bool read_time(const char *text, int64_t *t_us) {
    return sscanf(text, "{\"t\":%" SCNd64, t_us) == 1;
}

static bool add(struct lines *lines, char *text, size_t length, int64_t t_us) {
    if (lines->count == lines->room) {
        size_t room = lines->room == 0 ? 1024 : lines->room * 2;
        struct line *grown = realloc(lines->at, room * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        lines->at = grown;
        lines->room = room;
    }
    lines->at[lines->count] = (struct line){.t_us = t_us, .order = lines->count, .text = text, .length = length};
    lines->count++;
    return true;
}

static bool read_file(const char *path, struct lines *lines, char *error, size_t error_size) {
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        snprintf(error, error_size, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    bool worked = true;
    for (size_t number = 1; worked; number++) {
        char *text = NULL;
        size_t size = 0;
        int64_t t_us = 0;
        ssize_t length = getline(&text, &size, in);
        if (length <= 0 || text[length - 1] != '\n') {
            worked = feof(in) && !ferror(in);
            snprintf(error, error_size, "cannot read %s: %s", path, worked ? "" : strerror(errno));
            free(text);
            break;
        }
        if (!read_time(text, &t_us)) {
            snprintf(error, error_size, "%s:%zu: no event: its line does not begin with its time", path, number);
            worked = false;
        } else if (!add(lines, text, (size_t)length, t_us)) {
            snprintf(error, error_size, "out of memory at %s:%zu", path, number);
            worked = false;
        } else {
            text = NULL;
        }
        free(text);
    }
    fclose(in);
    return worked;
}

static int by_time(const void *left, const void *right) {
    const struct line *a = left, *b = right;
    if (a->t_us != b->t_us) {
        return a->t_us < b->t_us ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

bool chaos_merge(const char *const *paths, size_t count, const char *out_path, char *error, size_t error_size) {
    struct lines lines = {0};
    bool worked = true;
    for (size_t i = 0; i < count && worked; i++) {
        worked = read_file(paths[i], &lines, error, error_size);
    }
    if (worked && lines.count > 0) {
        qsort(lines.at, lines.count, sizeof lines.at[0], by_time);
    }
    FILE *out = worked ? fopen(out_path, "we") : NULL;
    for (size_t i = 0; out != NULL && i < lines.count; i++) {
        (void)fwrite(lines.at[i].text, 1, lines.at[i].length, out); /* ferror() tells */
    }
    if (worked && (out == NULL || ferror(out))) {
        snprintf(error, error_size, "cannot write %s: %s", out_path, strerror(errno));
        worked = false;
    }
    if (out != NULL && fclose(out) != 0 && worked) {
        snprintf(error, error_size, "cannot write %s: %s", out_path, strerror(errno));
        worked = false;
    }
    for (size_t i = 0; i < lines.count; i++) {
        free(lines.at[i].text);
    }
    free(lines.at);
    return worked;
}
