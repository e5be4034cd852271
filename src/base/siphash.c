/* SipHash-2-4, by J.-P. Aumasson and D. J. Bernstein: "SipHash: a fast short-input PRF" (2012). */
#include "base/siphash.h"

#include <assert.h>

struct state {
    uint64_t v[4];
};

static uint64_t rotate(uint64_t word, unsigned by) {
    return word << by | word >> (64 - by);
}

static void mix(struct state *state, unsigned rounds) {
    uint64_t *v = state->v;
    for (; rounds > 0; rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

static void take(struct state *state, uint64_t word) {
    state->v[3] ^= word;
    mix(state, 2);
    state->v[0] ^= word;
}

/* The first byte is the lowest, on any machine. */
static uint64_t word_of(const unsigned char *bytes, size_t size) {
    assert(size <= 8);
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

uint64_t redlock_siphash(const uint64_t key[2], const void *bytes, size_t size) {
    struct state state = {{key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                           key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)}};
    const unsigned char *at = bytes, *whole = at + size / 8 * 8;
    for (; at < whole; at += 8) {
        take(&state, word_of(at, 8));
    }
    take(&state, word_of(at, size % 8) | (uint64_t)size << 56);
    state.v[2] ^= 0xff;
    mix(&state, 4);
    return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}
