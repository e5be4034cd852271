/* Reads histories from memory for the tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "history_lines.h"

bool lines_read(const char *bytes, size_t length, struct chaos_history *history, struct chaos_error *error) {
    FILE *in = tmpfile();
    assert_non_null(in);
    assert_int_equal(fwrite(bytes, 1, length, in), length);
    rewind(in);
    memset(history, 0x55, sizeof *history);
    bool worked = chaos_history_read(in, "h.jsonl", history, error);
    fclose(in);
    return worked;
}
