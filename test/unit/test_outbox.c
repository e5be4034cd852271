/* Bytes to write: their order through growth and partial writes, withdrawal, the bound. */
#include "server/outbox.h"
#include "test.h"

TEST(bytes_come_out_as_they_went_in) {
    struct redlock_outbox outbox = {0};
    unsigned char in = 0, out = 0;
    uint64_t appended = 0, taken = 0;
    for (unsigned turn = 0; turn < 5000; turn++) {
        char bytes[300];
        size_t size = turn * 7919 % sizeof bytes;
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (char)in++;
        }
        assert_true(redlock_outbox_append(&outbox, bytes, size));
        appended += size;
        assert_int_equal(redlock_outbox_end(&outbox), appended);
        size_t write = turn * 104729 % (redlock_outbox_size(&outbox) + 1);
        for (size_t i = 0; i < write; i++) {
            assert_int_equal((unsigned char)outbox.bytes[outbox.head + i], out++);
        }
        redlock_outbox_wrote(&outbox, write);
        taken += write;
        assert_int_equal(outbox.written, taken);
        assert_int_equal(redlock_outbox_size(&outbox), appended - taken);
    }
    redlock_outbox_clear(&outbox);
    assert_int_equal(redlock_outbox_end(&outbox), 0);
}

TEST(a_burst_gives_its_room_back) {
    static const char bytes[100000];
    struct redlock_outbox outbox = {0};
    assert_true(redlock_outbox_append(&outbox, bytes, sizeof bytes));
    const size_t large = outbox.room;
    for (int i = 0; i < 3000; i++) {
        assert_true(redlock_outbox_append(&outbox, bytes, 100));
        redlock_outbox_wrote(&outbox, redlock_outbox_size(&outbox));
    }
    assert_true(outbox.room < large / 8);
    /* Memory that is used again and again is kept. */
    assert_true(redlock_outbox_append(&outbox, bytes, 50000));
    const size_t room = outbox.room;
    for (int i = 0; i < 3000; i++) {
        redlock_outbox_wrote(&outbox, redlock_outbox_size(&outbox));
        assert_true(redlock_outbox_append(&outbox, bytes, 50000));
        assert_int_equal(outbox.room, room);
    }
    redlock_outbox_clear(&outbox);
}

TEST(withdrawn_bytes_are_never_written) {
    struct redlock_outbox outbox = {0};
    assert_true(redlock_outbox_append(&outbox, "aaaabbbbccccdddd", 16));
    redlock_outbox_wrote(&outbox, 2);
    redlock_outbox_withdraw(&outbox, 4, 8);
    assert_int_equal(redlock_outbox_end(&outbox), 8);
    assert_int_equal(redlock_outbox_size(&outbox), 6);
    assert_memory_equal(outbox.bytes + outbox.head, "aadddd", 6);
    redlock_outbox_withdraw(&outbox, 4, 4);
    assert_memory_equal(outbox.bytes + outbox.head, "aa", 2);
    assert_int_equal(redlock_outbox_size(&outbox), 2);
    redlock_outbox_clear(&outbox);
}

/* What was written is no longer in memory, also where a move left a copy; what waits stays. */
TEST(written_bytes_can_be_wiped) {
    struct redlock_outbox outbox = {0};
    redlock_outbox_wipe(&outbox);
    assert_true(redlock_outbox_append(&outbox, "secret", 6));
    assert_true(redlock_outbox_append(&outbox, "waits", 5));
    redlock_outbox_wrote(&outbox, 6);
    assert_true(redlock_outbox_append(&outbox, "secret", 6));
    redlock_outbox_withdraw(&outbox, 11, 6);
    redlock_outbox_wipe(&outbox);
    assert_int_equal(redlock_outbox_size(&outbox), 5);
    assert_memory_equal(outbox.bytes + outbox.head, "waits", 5);
    assert_null(memmem(outbox.bytes, outbox.room, "sec", 3));
    redlock_outbox_clear(&outbox);
}

TEST(the_bound_holds) {
    static char block[1 << 20];
    struct redlock_outbox outbox = {0};
    for (size_t i = 0; i < REDLOCK_OUTBOX_SIZE_MAX / sizeof block; i++) {
        assert_true(redlock_outbox_append(&outbox, block, sizeof block));
    }
    size_t full = redlock_outbox_size(&outbox);
    assert_int_equal(full, REDLOCK_OUTBOX_SIZE_MAX);
    assert_false(redlock_outbox_append(&outbox, block, 1));
    redlock_outbox_wrote(&outbox, full);
    assert_true(redlock_outbox_append(&outbox, block, 1));
    redlock_outbox_clear(&outbox);
}
