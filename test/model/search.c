/* The search: one array of states as keys, in the order in which they were found, which is also the
 * queue; and a hash table of their indexes. */
#include "search.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define NO_STATE UINT32_MAX

enum { BATCH = 64 };

struct search {
    const struct model *model;
    const void *config;
    unsigned key_words;
    uint64_t *keys;
    uint32_t *parents;
    size_t count, room, limit;
    uint64_t *table; /* entry_of() each state; 0 is empty */
    size_t slots;    /* a power of two, at least twice the states */
    uint32_t from;   /* the state whose steps are taken */
    uint32_t violating;
    const char *violation;
    uint64_t transitions;
    uint64_t goals[MODEL_GOALS_MAX];
    /* The states that the steps of `from` have led to so far. */
    uint64_t reached_keys[BATCH][MODEL_KEY_WORDS_MAX], hashes[BATCH];
    unsigned reached_count;
    /* While a trace is printed: the key that the next step must lead to, and the state that it led
     * to. */
    const uint64_t *wanted;
    void *reached;
    unsigned step_number;
};

static void *grow(void *memory, size_t bytes) {
    void *grown = realloc(memory, bytes);
    if (!grown) {
        fprintf(stderr, "out of memory for %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
#ifdef MADV_HUGEPAGE
    /* States lie all over these arrays. With small pages, finding the page takes longer than
     * reading it. Whether the kernel follows this advice does not matter otherwise. */
    const uintptr_t huge = 2U << 20, first = ((uintptr_t)grown + huge - 1) & ~(huge - 1);
    if (bytes > 2 * huge) {
        (void)madvise((void *)first, ((uintptr_t)grown + bytes - first) & ~(huge - 1), MADV_HUGEPAGE);
    }
#endif
    return grown;
}

static uint64_t *key_of(const struct search *search, uint64_t index) {
    return search->keys + index * search->key_words;
}

static size_t key_bytes(const struct search *search) {
    return search->key_words * sizeof(uint64_t);
}

static bool is_same(const struct search *search, const uint64_t *a, const uint64_t *b) {
    uint64_t differences = 0;
    for (unsigned i = 0; i < search->key_words; i++) {
        differences |= a[i] ^ b[i];
    }
    return differences == 0;
}

static uint64_t hash_of(const struct search *search, const uint64_t *key) {
    uint64_t hash = 0;
    for (unsigned i = 0; i < search->key_words; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

/* An entry of the table: the upper half of the hash tells most keys apart without a look at
 * them. */
static uint64_t entry_of(uint64_t index, uint64_t hash) {
    return (hash & ~(uint64_t)UINT32_MAX) | (index + 1);
}

static uint64_t index_of(uint64_t entry) {
    return (entry & UINT32_MAX) - 1;
}

/* The slot of this key, or the empty slot for it. */
static uint64_t slot_of(const struct search *search, const uint64_t *key, uint64_t hash) {
    uint64_t slot = hash & (search->slots - 1);
    for (;; slot = (slot + 1) & (search->slots - 1)) {
        const uint64_t entry = search->table[slot];
        if (!entry || (entry >> 32 == hash >> 32 && is_same(search, key_of(search, index_of(entry)), key))) {
            return slot;
        }
    }
}

/* Room for so many states more. */
static void make_room(struct search *search, unsigned more) {
    if (search->count + more <= search->room) {
        return;
    }
    search->room = search->room ? search->room * 2 : 1024;
    search->keys = grow(search->keys, search->room * key_bytes(search));
    search->parents = grow(search->parents, search->room * sizeof(*search->parents));
    search->slots = search->room * 2;
    free(search->table);
    search->table = grow(NULL, search->slots * sizeof(*search->table));
    memset(search->table, 0, search->slots * sizeof(*search->table));
    for (uint64_t i = 0; i < search->count; i++) {
        const uint64_t hash = hash_of(search, key_of(search, i));
        uint64_t slot = hash & (search->slots - 1);
        while (search->table[slot]) {
            slot = (slot + 1) & (search->slots - 1);
        }
        search->table[slot] = entry_of(i, hash);
    }
}

static void add(struct search *search, const uint64_t *key, uint64_t hash) {
    const uint64_t slot = slot_of(search, key, hash);
    if (search->table[slot] || search->count == search->limit) {
        return;
    }
    _Alignas(max_align_t) unsigned char state[MODEL_STATE_BYTES_MAX];
    memset(state, 0, search->model->state_bytes);
    memcpy(key_of(search, search->count), key, key_bytes(search));
    search->parents[search->count] = search->from;
    search->table[slot] = entry_of(search->count++, hash);
    search->model->unpack(search->config, key, state);
    const char *violation = search->model->violation(search->config, state);
    if (violation && !search->violation) {
        search->violation = violation;
        search->violating = (uint32_t)search->count - 1;
    }
}

/* Takes in the states that were reached. Most of the time goes into waiting for memory, so the
 * processor is told early what will be read. */
static void take_in(struct search *search) {
    make_room(search, search->reached_count);
    for (unsigned i = 0; i < search->reached_count; i++) {
        const uint64_t entry = search->table[search->hashes[i] & (search->slots - 1)];
        if (entry) {
            __builtin_prefetch(key_of(search, index_of(entry)));
        }
    }
    for (unsigned i = 0; i < search->reached_count; i++) {
        add(search, search->reached_keys[i], search->hashes[i]);
    }
    search->reached_count = 0;
}

static void reach(struct search *search, const void *state) {
    if (search->reached_count == BATCH) {
        take_in(search);
    }
    uint64_t *key = search->reached_keys[search->reached_count];
    memset(key, 0, key_bytes(search));
    search->model->pack(search->config, state, key);
    const uint64_t hash = hash_of(search, key);
    search->hashes[search->reached_count++] = hash;
    __builtin_prefetch(&search->table[hash & (search->slots - 1)]);
}

void search_goal(struct search *search, unsigned goal) {
    assert(goal < MODEL_GOALS_MAX);
    search->goals[goal]++;
}

void search_step(struct search *search, const void *next, const char *format, ...) {
    if (!search->wanted) {
        search->transitions++;
        reach(search, next);
        return;
    }
    uint64_t key[MODEL_KEY_WORDS_MAX] = {0};
    search->model->pack(search->config, next, key);
    if (memcmp(key, search->wanted, key_bytes(search)) != 0 || search->reached) {
        return;
    }
    search->reached = grow(NULL, search->model->state_bytes);
    memcpy(search->reached, next, search->model->state_bytes);
    va_list arguments;
    va_start(arguments, format);
    printf("%4u. ", ++search->step_number);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

static unsigned depth_of(const struct search *search, uint32_t index) {
    unsigned depth = 0;
    for (; search->parents[index] != NO_STATE; index = search->parents[index]) {
        depth++;
    }
    return depth;
}

/* Keys sort the nodes. The trace takes the path again from the first state, so that a node keeps
 * its name. */
static void tell(struct search *search) {
    const unsigned depth = depth_of(search, search->violating);
    uint32_t *way = grow(NULL, (depth + 1) * sizeof(*way));
    uint32_t index = search->violating;
    for (unsigned i = depth; i > 0; i--) {
        way[i] = index;
        index = search->parents[index];
    }
    void *state = grow(NULL, search->model->state_bytes);
    memset(state, 0, search->model->state_bytes);
    search->model->initial(search->config, state);
    for (unsigned i = 1; i <= depth; i++) {
        search->wanted = key_of(search, way[i]);
        search->model->steps(search->config, state, search);
        assert(search->reached);
        free(state);
        state = search->reached;
        search->reached = NULL;
    }
    printf("   => %s\n", search->violation);
    free(state);
    free(way);
}

static double now_seconds(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        perror("clock_gettime");
        exit(EXIT_FAILURE);
    }
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* An unpacked state must have the key that it came from: no bits were lost, and there is only one
 * order. */
static bool is_faithful(const struct search *search, const void *state) {
    uint64_t key[MODEL_KEY_WORDS_MAX] = {0};
    search->model->pack(search->config, state, key);
    return is_same(search, key, key_of(search, search->from));
}

void search_run(const struct model *model, const void *config, uint64_t states_max, struct search_result *result) {
    struct search search = {.model = model,
                            .config = config,
                            .key_words = model->key_words(config),
                            .limit = (size_t)(states_max < NO_STATE ? states_max : NO_STATE - 1),
                            .from = NO_STATE};
    assert(search.key_words <= MODEL_KEY_WORDS_MAX && model->state_bytes <= MODEL_STATE_BYTES_MAX);
    const double began = now_seconds();
    _Alignas(max_align_t) unsigned char state[MODEL_STATE_BYTES_MAX] = {0};
    make_room(&search, 1);
    model->initial(config, state);
    reach(&search, state);
    take_in(&search);
    uint64_t next = 0;
    while (next < search.count && !search.violation && search.count < search.limit) {
        search.from = (uint32_t)next++;
        memset(state, 0, model->state_bytes);
        model->unpack(config, key_of(&search, search.from), state);
        assert(is_faithful(&search, state));
        model->steps(config, state, &search);
        take_in(&search);
    }
    *result = (struct search_result){
        .violation = search.violation,
        .exhausted = next == search.count,
        .states = search.count,
        .transitions = search.transitions,
        .depth = depth_of(&search, search.violation ? search.violating : (uint32_t)search.count - 1),
        .seconds = now_seconds() - began,
        .bytes = search.room * (key_bytes(&search) + sizeof(*search.parents)) + search.slots * sizeof(*search.table),
    };
    memcpy(result->goals, search.goals, sizeof(result->goals));
    if (search.violation) {
        tell(&search);
    }
    free(search.keys);
    free(search.parents);
    free(search.table);
}
