/* Who reads a lock, and who waits for it, by what all nodes say to an inspection. */
#include "group/names.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "wire/page.h"

struct said {
    struct redlock_page_name name;
    unsigned node;
};

/* Orders by the token, those who wait last. */
static int compare_names(const struct redlock_page_name *a, const struct redlock_page_name *b) {
    if (a->waits != b->waits) {
        return a->waits - b->waits;
    }
    const size_t size = a->token_size < b->token_size ? a->token_size : b->token_size;
    const int order = memcmp(a->token, b->token, size);
    return order != 0 ? order : (a->token_size > b->token_size) - (a->token_size < b->token_size);
}

static int compare(const void *left, const void *right) {
    const struct said *a = left, *b = right;
    const int order = compare_names(&a->name, &b->name);
    return order != 0 ? order : (a->node > b->node) - (a->node < b->node);
}

/* Visits each that can be told as a C string. Returns how many; with `all`, writes them there, and
 * adds up the bytes of their tokens. */
static size_t visit(const struct redlock_names_said *said, unsigned nodes, struct said *all, size_t *bytes) {
    size_t count = 0;
    for (unsigned i = 0; i < nodes; i++) {
        const char *at = said[i].names, *end = at == NULL ? NULL : at + said[i].size;
        struct redlock_page_name name;
        while (at < end && redlock_page_next_name(&at, end, &name)) {
            if (memchr(name.token, '\0', name.token_size) != NULL) {
                continue;
            }
            if (all != NULL) {
                all[count] = (struct said){.name = name, .node = i};
                *bytes += name.token_size + 1;
            }
            count++;
        }
    }
    return count;
}

/* One of them: what the nodes say from `first` on. Returns how many say so. A node counts once. */
static size_t merge(const struct said *first, const struct said *end, unsigned quorum,
                    struct redlock_result_name *merged) {
    int64_t ms[REDLOCK_NODES_MAX];
    const struct said *said = first;
    unsigned nodes = 0;
    for (; said < end && compare_names(&said->name, &first->name) == 0; said++) {
        if (said == first || said->node != said[-1].node) {
            assert(nodes < REDLOCK_NODES_MAX);
            redlock_number_insert(ms, nodes++, said->name.ms);
        }
    }
    merged->nodes = nodes;
    /* Until fewer than a quorum have the token of who reads; the median of how long who waits has
     * waited. */
    merged->ms = first->name.waits ? ms[(nodes - 1) / 2] : ms[nodes - (nodes >= quorum ? quorum : 1)];
    return (size_t)(said - first);
}

void redlock_names_merge(const struct redlock_names_said *said, unsigned nodes, unsigned quorum,
                         struct redlock_result_others *others) {
    size_t bytes = 0;
    const size_t total = visit(said, nodes, NULL, NULL);
    struct said *all = total > 0 ? malloc(total * sizeof *all) : NULL;
    assert(quorum > 0 && nodes <= REDLOCK_NODES_MAX && others->named == NULL);
    if (all != NULL) {
        (void)visit(said, nodes, all, &bytes);
        qsort(all, total, sizeof *all, compare);
        others->named = malloc(total * sizeof *others->named + bytes);
    }
    char *at = others->named != NULL ? (char *)(others->named + total) : NULL;
    for (size_t i = 0; others->named != NULL && i < total;) {
        struct redlock_result_name *one = &others->named[others->named_count++];
        const struct redlock_page_name *name = &all[i].name;
        others->named_readers += !name->waits;
        one->token = memcpy(at, name->token, name->token_size);
        at[name->token_size] = '\0';
        at += name->token_size + 1;
        i += merge(all + i, all + total, quorum, one);
    }
    free(all);
}
