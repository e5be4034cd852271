/* The SHA1 of each script is that of its source, by a SHA1 of the test's own (a server's is
 * compared in the integration tests). */
#include "test.h"

#include "wire/script.h"

static uint32_t rotate(uint32_t value, unsigned bits) {
    return value << bits | value >> (32 - bits);
}

static void block(uint32_t h[5], const unsigned char *bytes) {
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 16; i++) {
        w[i] = (uint32_t)bytes[4 * i] << 24 | (uint32_t)bytes[4 * i + 1] << 16 | (uint32_t)bytes[4 * i + 2] << 8 |
               bytes[4 * i + 3];
    }
    for (int i = 16; i < 80; i++) {
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
        uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
        uint32_t t = rotate(a, 5) + f + e + k + w[i];
        e = d, d = c, c = rotate(b, 30), b = a, a = t;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

static void sha1(const char *source, size_t size, char hex[41]) {
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t padded = (size + 9 + 63) / 64 * 64;
    unsigned char *bytes = calloc(1, padded);
    assert_non_null(bytes);
    memcpy(bytes, source, size);
    bytes[size] = 0x80;
    for (int i = 0; i < 8; i++) {
        bytes[padded - 1 - (size_t)i] = (unsigned char)((uint64_t)size * 8 >> (8 * i));
    }
    for (size_t at = 0; at < padded; at += 64) {
        block(h, bytes + at);
    }
    free(bytes);
    (void)sprintf(hex, "%08x%08x%08x%08x%08x", h[0], h[1], h[2], h[3], h[4]);
}

TEST(each_sha1_is_that_of_its_source) {
    char hex[41];
    sha1("abc", 3, hex);
    assert_string_equal(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
    for (int i = 0; i < REDLOCK_SCRIPT_COUNT; i++) {
        const struct redlock_script *script = redlock_script_get((enum redlock_script_id)i);
        assert_int_equal(strlen(script->source), script->source_size);
        assert_int_equal(strlen(script->sha1), REDLOCK_SHA1_SIZE);
        sha1(script->source, script->source_size, hex);
        assert_string_equal(hex, script->sha1);
    }
    for (int i = 0; i < REDLOCK_RARE_SCRIPT_COUNT; i++) {
        const struct redlock_script *script = &redlock_rare_scripts[i];
        assert_int_equal(strlen(script->source), script->source_size);
        sha1(script->source, script->source_size, hex);
        assert_string_equal(hex, script->sha1);
    }
}
