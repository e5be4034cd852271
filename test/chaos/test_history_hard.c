/* Nonsense histories, and too little memory: the result is a history or a sentence, never a crash
 * or a leak. */
#include "test.h"
#include <jansson.h>

#include "history/history.h"
#include "history_lines.h"
#include "scarce_memory.h"
#include "short_memory.h"

/* Long enough that every array grows more than once. */
static char *long_text(size_t *size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    assert_non_null(out);
    fputs(SPAWN, out); /* an event before the start is kept */
    fputs(START, out);
    for (int i = 0; i < 40; i++) {
        fprintf(out,
                "{\"t\":%d,\"event\":\"invoke\",\"client\":2,\"op\":%d,\"what\":\"release\",\"resource\":1,"
                "\"deadline\":90000}\n",
                2000 + i, i);
        fprintf(out,
                "{\"t\":%d,\"event\":\"complete\",\"client\":2,\"op\":%d,\"result\":\"LOST\",\"attempts\":1,\"token\":"
                "\"\",\"votes\":\"\",\"message\":\"why\"}\n",
                3000 + i, i);
        fprintf(out, "{\"t\":%d,\"event\":\"claim\",\"client\":2,\"resource\":1,\"token\":\"t%d\",\"until\":%d}\n",
                2000 + i, i % 20, 8000 + i);
        fprintf(out, "{\"t\":%d,\"event\":\"intent\",\"client\":2,\"resource\":1,\"token\":\"t%d\",\"read\":%d}\n",
                2000 + i, i % 20, i);
        fprintf(out,
                "{\"t\":%d,\"event\":\"fault\",\"id\":%d,\"kind\":\"cut\",\"nodes\":[1],\"clients\":[1],\"amount\":0,"
                "\"text\":\"x\",\"error\":\"e\"}\n",
                2000 + i, i + 5);
        fprintf(out, "{\"t\":%d,\"event\":\"heal\",\"id\":%d,\"error\":\"f\"}\n", 2000 + i, i + 5);
        fprintf(out, "{\"t\":%d,\"event\":\"spawn\",\"client\":3,\"pid\":%d}\n", 2000 + i, i + 5);
        fprintf(out, "{\"t\":%d,\"event\":\"keys\",\"to\":9000,\"resource\":1,\"nodes\":[null,null,null]}\n", 2000 + i);
    }
    fputs(LEFT FINISH, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

struct text {
    char *bytes;
    size_t size;
};

static enum short_end read_long(void *what) {
    const struct text *text = what;
    struct chaos_error error = {""};
    struct chaos_history history;
    FILE *in = fmemopen(text->bytes, text->size, "r");
    if (in == NULL) {
        return SHORT_WRONG;
    }
    bool worked = chaos_history_read(in, "h.jsonl", &history, &error);
    bool right = worked ? history.operation_count == 40 && history.lease_count == 20 &&
                              history.leases[0].claim_count == 2 && history.band_count == 40 &&
                              strcmp(history.operations[39].message, "why") == 0
                        /* jansson's lexer reports its own lack of memory as an unexpected token. */
                        : strncmp(error.text, "h.jsonl:", 8) == 0 && strstr(error.text, "not JSON: ") != NULL;
    fputs(error.text, stderr);
    fclose(in);
    chaos_history_clear(&history);
    return !right ? SHORT_WRONG : worked ? SHORT_ENOUGH : SHORT_TOLD;
}

/* The first test: a process that has allocated much is slow to fork under a sanitizer. */
TEST(memory_runs_out) {
    struct text text;
    text.bytes = long_text(&text.size);
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);
    json_set_alloc_funcs(__wrap_malloc, free);
    /* Fails each of the first, then fewer and fewer. */
    enum short_end end = SHORT_TOLD;
    size_t ended = 0;
    long at = 1;
    for (; end != SHORT_ENOUGH; at += at < 1000 ? 1 : 1 + at / 100) {
        end = short_run(at, read_long, &text);
        ended += end == SHORT_ENDED;
    }
    json_set_alloc_funcs(old_malloc, old_free);
    print_message("%ld allocations, %zu that ended it\n", at, ended);
    assert_true(at > 1000 && ended > 100);
    free(text.bytes);
}

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static size_t whole_text(char *text) {
    text[0] = '\0';
    for (size_t i = 0; i < EVENTS; i++) {
        strcat(text, whole[i]);
    }
    return strlen(text);
}

/* Flips, cuts, deletes, inserts and repeats bytes. The result is a history, or a sentence that
 * names the file, without a crash or a leak. */
TEST(rubbish) {
    static const char *const pieces[] = {"0",  "-",  "9999999999999999", "null", "[",    "]",    "{}",
                                         "\"", "\n", "\\u0000",          "1e9",  "\xff", "true", ","};
    uint64_t random = 42;
    size_t good = 0, bad = 0;
    for (int round = 0; round < 20000; round++) {
        char text[16384];
        size_t length = whole_text(text);
        for (uint64_t changes = next(&random) % 4 + 1; changes > 0; changes--) {
            size_t at = next(&random) % (length + 1), some = next(&random) % 40;
            some = some < length - at ? some : length - at;
            const char *piece = pieces[next(&random) % (sizeof pieces / sizeof *pieces)];
            switch (next(&random) % 6) {
            case 0:
                text[at] = (char)(text[at] ^ 1 << next(&random) % 8);
                break;
            case 1:
                length = at;
                break;
            case 2:
                memmove(text + at, text + at + some, length - at - some);
                length -= some;
                break;
            case 3:
                memmove(text + at + strlen(piece), text + at, length - at);
                memcpy(text + at, piece, strlen(piece));
                length += strlen(piece);
                break;
            case 4: /* repeats one piece of it */
                memmove(text + at + some, text + at, length - at);
                length += some;
                break;
            default: /* another digit, so that the rest is still JSON */
                while (at < length && (text[at] < '0' || text[at] > '9')) {
                    at++;
                }
                text[at] = at < length ? (char)('0' + next(&random) % 10) : text[at];
            }
        }
        struct chaos_history history;
        struct chaos_error error = {""};
        if (lines_read(text, length, &history, &error)) {
            good++;
            assert_true(history.node_count >= 1 && history.node_count <= CHAOS_NODES_MAX);
            chaos_history_clear(&history);
        } else {
            bad++;
            assert_true(strncmp(error.text, "h.jsonl:", 8) == 0 && strlen(error.text) > 15);
        }
    }
    print_message("%zu were read, %zu refused\n", good, bad);
    assert_true(good > 1000 && bad > 1000);
}

TEST(deep_and_long) {
    size_t length = 3000000, start = strlen(START);
    char *text = malloc(length + start + 2);
    assert_non_null(text);
    memcpy(text, START, start);
    memset(text + start, '[', length);
    text[start + length] = '\n';
    text[start + length + 1] = '\0';
    lines_refuse(text, "h.jsonl:2: not JSON: maximum parsing depth");
    memset(text + start, 'x', length);
    lines_refuse(text, "h.jsonl:2: not JSON");
    free(text);
}
