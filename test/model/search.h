/* An exhaustive search: every state that a model can reach, breadth first, and the shortest path to
 * a wrong state. */
#ifndef MODEL_SEARCH_H
#define MODEL_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_KEY_WORDS_MAX = 8, MODEL_STATE_BYTES_MAX = 2048, MODEL_GOALS_MAX = 16 };

struct search;

/* A model: states, and the steps from one state to others. A state is a plain struct while the
 * model works on it, and a key of a few words in the array. Two states that differ only in the
 * order of interchangeable things may have one key. */
struct model {
    size_t state_bytes;
    unsigned (*key_words)(const void *config);
    void (*initial)(const void *config, void *state);
    void (*pack)(const void *config, const void *state, uint64_t *key); /* the key comes zeroed */
    void (*unpack)(const void *config, const uint64_t *key, void *state);
    /* Calls search_step() for every state that one step may lead to. */
    void (*steps)(const void *config, const void *state, struct search *search);
    /* What is wrong with a state, as a sentence; NULL if nothing is. */
    const char *(*violation)(const void *config, const void *state);
    /* What may happen on a path, reported by search_goal(); ends with NULL. A search that misses a
     * goal that its configuration should reach (bit i: goal i) has proved little. */
    const char *const *goals;
    unsigned (*expected)(const void *config);
};

struct search_result {
    const char *violation; /* NULL: none, in all states that there are */
    bool exhausted;        /* false: a violation or the bound on states ended the search */
    uint64_t states, transitions;
    /* The longest of the shortest paths to a state; with a violation its number of steps. */
    unsigned depth;
    double seconds;
    size_t bytes;
    uint64_t goals[MODEL_GOALS_MAX]; /* how often each was reached */
};

/* Searches at most this many states. Prints the steps of a violation, numbered, in words. */
void search_run(const struct model *model, const void *config, uint64_t states_max, struct search_result *result);

/* From a model's steps(): one step leads to this state. The words are used only for a trace. */
void search_step(struct search *search, const void *next, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* From a model's steps(): goal number `goal` was reached. */
void search_goal(struct search *search, unsigned goal);

#endif
