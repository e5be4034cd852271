/* SipHash-2-4 on vectors of its authors (vectors.h of the reference implementation). */
#include "base/siphash.h"
#include "test.h"

/* The key is the bytes 0 to 15, the input the bytes 0, 1, 2 and so on. */
TEST(it_is_that_of_its_authors) {
    static const struct {
        size_t size;
        uint64_t hash;
    } rows[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},  {2, UINT64_C(0x0d6c8009d9a94f5a)},
        {3, UINT64_C(0x85676696d7fb7e2d)},  {4, UINT64_C(0xcf2794e0277187b7)},  {5, UINT64_C(0x18765564cd99a68d)},
        {6, UINT64_C(0xcbc9466e58fee3ce)},  {7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
        {9, UINT64_C(0x9e0082df0ba9e4b0)},  {15, UINT64_C(0xa129ca6149be45e5)}, {16, UINT64_C(0x3f2acc7f57c29bdb)},
        {31, UINT64_C(0x32d892fad841c342)}, {63, UINT64_C(0x958a324ceb064572)}};
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char input[64];
    for (unsigned i = 0; i < sizeof input; i++) {
        input[i] = (unsigned char)i;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(redlock_siphash(key, input, rows[i].size) == rows[i].hash);
    }
}
