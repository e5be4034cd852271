/* Lines of files of events, in memory, and in order of time. */
#ifndef CHAOS_LINES_H
#define CHAOS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "faults/error.h"

struct chaos_line {
    char *text; /* with its newline */
    size_t length;
    size_t number; /* from 1, as it was read */
    int pass;      /* what comes in an earlier pass comes first, whatever its time */
    int64_t t_us;
    int rank; /* of what has one time */
};

struct chaos_lines {
    struct chaos_line *at;
    size_t count;
    size_t read; /* so many, also those that were dropped */
};

enum chaos_next { CHAOS_NEXT_LINE, CHAOS_NEXT_END, CHAOS_NEXT_BROKEN };

/* Reads one line and adds it. A last line without its newline is one that a killed process did not
 * finish: it is the end. BROKEN with errno. */
enum chaos_next chaos_lines_next(struct chaos_lines *lines, FILE *in);
/* Drops the last. */
void chaos_lines_drop(struct chaos_lines *lines);
/* By pass, time, rank; what has all in common stays in the order in which it was read. */
void chaos_lines_sort(struct chaos_lines *lines);
void chaos_lines_clear(struct chaos_lines *lines);

/*
 * Joins `count` files of processes into out_path, which is replaced, by time. Lines without their
 * newline (a killed process's last) are left out. False with a sentence.
 */
bool chaos_merge(const char *const *paths, size_t count, const char *out_path, struct chaos_error *error);

#endif
