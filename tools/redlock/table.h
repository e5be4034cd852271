/* A table for people: columns as wide as their widest cell, the last one as it is. */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

#include <stddef.h>

enum { TOOL_TABLE_COLUMNS = 7 };

struct tool_row {
    const char *cells[TOOL_TABLE_COLUMNS];
};

/* To standard output. The first row is the heading; "" is shown as "-", but not in the last column. */
void tool_table_print(const struct tool_row *rows, size_t count);

#endif
