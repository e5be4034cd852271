/* Reads histories from memory for the tests. */
#include "history_lines.h"
#include "test.h"

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

void lines_refuse(const char *text, const char *sentence) {
    struct chaos_error error = {""};
    struct chaos_history history;
    if (lines_read(text, strlen(text), &history, &error)) {
        fail_msg("it was read: %s", text);
    }
    assert_contains(error.text, sentence);
    /* Nothing is left to clear. Another clear does no harm. */
    struct chaos_history none = {0};
    assert_memory_equal(&history, &none, sizeof none);
    chaos_history_clear(&history);
}
