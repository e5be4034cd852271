/* A table for people: each column is as wide as its widest cell; the last one is not padded. */
#include "table.h"

#include "text.h"

static const char *shown(const struct tool_row *row, size_t column, size_t columns) {
    const char *cell = row->cells[column];
    return *cell == '\0' && column + 1 < columns ? "-" : cell;
}

void tool_table_print(FILE *out, const struct tool_row *rows, size_t count, size_t columns) {
    size_t widths[TOOL_TABLE_COLUMNS] = {0};
    for (size_t i = 0; i < count; i++) {
        for (size_t column = 0; column < columns; column++) {
            size_t width = tool_safe_width(shown(&rows[i], column, columns));
            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t owed = 0; /* spaces to print before the next cell, so that no line ends in spaces */
        for (size_t column = 0; column < columns; column++) {
            const char *cell = shown(&rows[i], column, columns);
            if (*cell != '\0') {
                fprintf(out, "%*s", (int)owed, "");
                tool_print_safe(out, cell);
                owed = 0;
            }
            owed += widths[column] - tool_safe_width(cell) + 2;
        }
        fputc('\n', out);
    }
}
