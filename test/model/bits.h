/* Packs small numbers into a row of 64-bit words and reads them back: the compact form of a
 * state. */
#ifndef MODEL_BITS_H
#define MODEL_BITS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct bits {
    uint64_t *words;
    unsigned at;
};

/* The words must be zero from the first bit onwards. */
static inline void bits_put(struct bits *bits, uint64_t value, unsigned width) {
    assert(width < 64 && value >> width == 0);
    const unsigned word = bits->at / 64, shift = bits->at % 64;
    bits->words[word] |= value << shift;
    if (shift + width > 64) {
        bits->words[word + 1] |= value >> (64 - shift);
    }
    bits->at += width;
}

static inline uint64_t bits_get(struct bits *bits, unsigned width) {
    const unsigned word = bits->at / 64, shift = bits->at % 64;
    uint64_t value = bits->words[word] >> shift;
    if (shift + width > 64) {
        value |= bits->words[word + 1] << (64 - shift);
    }
    bits->at += width;
    return value & ((UINT64_C(1) << width) - 1);
}

/* Nodes are interchangeable, so a state is stored with its nodes sorted by their contents. No
 * branch depends on these: the processor could not foresee it. */
static inline void bits_sort(uint64_t *columns, unsigned n) {
    for (unsigned i = 1; i < n; i++) {
        uint64_t column = columns[i];
        for (unsigned j = 0; j < i; j++) {
            const uint64_t at = columns[j], least = at < column ? at : column;
            column ^= at ^ least; /* the larger one */
            columns[j] = least;
        }
        columns[i] = column;
    }
}

/* Whether the columns of a come before those of b, if all are not the same. */
static inline bool bits_are_less(const uint64_t *a, const uint64_t *b, unsigned n) {
    unsigned i = 0;
    while (i + 1 < n && a[i] == b[i]) {
        i++;
    }
    return a[i] < b[i];
}

#endif
