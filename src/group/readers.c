/* Who reads a lock, by what all nodes say to an inspection. */
#include "group/readers.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "wire/page.h"

struct said {
    struct redlock_page_reader reader;
    unsigned node;
};

static int compare_tokens(const struct redlock_page_reader *a, const struct redlock_page_reader *b) {
    const size_t size = a->token_size < b->token_size ? a->token_size : b->token_size;
    const int order = memcmp(a->token, b->token, size);
    return order != 0 ? order : (a->token_size > b->token_size) - (a->token_size < b->token_size);
}

static int compare(const void *left, const void *right) {
    const struct said *a = left, *b = right;
    const int order = compare_tokens(&a->reader, &b->reader);
    return order != 0 ? order : (a->node > b->node) - (a->node < b->node);
}

/* Visits each that can be told as a C string. Returns how many; with `all`, writes them there, and
 * adds up the bytes of their tokens. */
static size_t visit(const struct redlock_readers_said *said, unsigned nodes, struct said *all, size_t *bytes) {
    size_t count = 0;
    for (unsigned i = 0; i < nodes; i++) {
        const char *at = said[i].names, *end = at == NULL ? NULL : at + said[i].size;
        struct redlock_page_reader reader;
        while (at < end && redlock_page_next_reader(&at, end, &reader)) {
            if (memchr(reader.token, '\0', reader.token_size) != NULL) {
                continue;
            }
            if (all != NULL) {
                all[count] = (struct said){.reader = reader, .node = i};
                *bytes += reader.token_size + 1;
            }
            count++;
        }
    }
    return count;
}

/* One reader: those from `first` on with its token. Returns how many. A node counts once. */
static size_t merge(const struct said *first, const struct said *end, unsigned quorum,
                    struct redlock_result_reader *merged) {
    int64_t ttls_ms[REDLOCK_NODES_MAX];
    const struct said *said = first;
    unsigned nodes = 0;
    for (; said < end && compare_tokens(&said->reader, &first->reader) == 0; said++) {
        if (said == first || said->node != said[-1].node) {
            assert(nodes < REDLOCK_NODES_MAX);
            redlock_number_insert(ttls_ms, nodes++, said->reader.ttl_ms);
        }
    }
    merged->nodes = nodes;
    merged->ttl_ms = ttls_ms[nodes - (nodes >= quorum ? quorum : 1)];
    return (size_t)(said - first);
}

struct redlock_result_reader *redlock_readers_merge(const struct redlock_readers_said *said, unsigned nodes,
                                                    unsigned quorum, size_t *count) {
    size_t bytes = 0;
    const size_t total = visit(said, nodes, NULL, NULL);
    struct said *all = total > 0 ? malloc(total * sizeof *all) : NULL;
    struct redlock_result_reader *merged = NULL;
    assert(quorum > 0 && nodes <= REDLOCK_NODES_MAX);
    *count = 0;
    if (all != NULL) {
        (void)visit(said, nodes, all, &bytes);
        qsort(all, total, sizeof *all, compare);
        merged = malloc(total * sizeof *merged + bytes);
    }
    char *at = merged != NULL ? (char *)(merged + total) : NULL;
    for (size_t i = 0; merged != NULL && i < total;) {
        struct redlock_result_reader *one = &merged[(*count)++];
        const struct redlock_page_reader *reader = &all[i].reader;
        one->token = memcpy(at, reader->token, reader->token_size);
        at[reader->token_size] = '\0';
        at += reader->token_size + 1;
        i += merge(all + i, all + total, quorum, one);
    }
    free(all);
    return merged;
}
