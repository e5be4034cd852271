/* A table for people: each column is as wide as its widest cell; the last one is not padded. */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

#include <stddef.h>
#include <stdio.h>

enum { TOOL_TABLE_COLUMNS = 7 };

struct tool_row {
    const char *cells[TOOL_TABLE_COLUMNS];
};

/* Prints the first columns of each row. The first row is the heading. "" appears as "-", except in
 * the last column. */
void tool_table_print(FILE *out, const struct tool_row *rows, size_t count, size_t columns);

#endif
