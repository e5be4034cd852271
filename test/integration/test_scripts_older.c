/* Readers beside a version from before them, whose scripts are in older/, on a real server. */
#include "older_scripts.h"
#include "shared_scripts.h"

#define READS_A ((struct wait){.token = READER_A, .ticket = 11})
#define READS_B ((struct wait){.token = READER_B, .ticket = 13})

static const char *source_of(enum older_script_id id) {
    return older_scripts[id].source;
}

/* The answer: whether it is granted, and the holder. */
static void assert_older_wait(const char *token, const char *ticket, const char *answer) {
    const char *said = server_ask(server, "EVAL", source_of(OLDER_WAIT), "3", "door", QUEUE, WAITERS, token, ticket,
                                  "5", "600000", "300000", "900000", CHANNEL, "000000000900000000000000000000", "1");
    char begin[128];
    (void)snprintf(begin, sizeof begin, "%.*s", (int)strlen(answer), said);
    assert_string_equal(begin, answer);
}

static void assert_older_release(const char *token, const char *answer) {
    assert_string_equal(server_ask(server, "EVAL", source_of(OLDER_RELEASE), "1", "door", token, ":wait", "0"), answer);
}

TESTS_WITH(scripts_begin, scripts_end);

QUEUE_TEST(an_older_client_is_kept_out_and_changes_nothing) {
    assert_reads(TRY_A);
    assert_string_equal(server_ask(server, "EVAL", source_of(OLDER_EXTEND), "1", "door", TRY_A, "1000"), "-1");
    assert_older_release(TRY_A, "-1");
    assert_older_wait(FIRST, "10", "0\n(a zset)\n");
    assert_entry_ms(TRY_A, TTL_MS / 2, TTL_MS);
    /* It is in line: no reader passes it, and it is served. */
    assert_is(try_for(TRY_B, 0), REDLOCK_VOTE_DENIED);
    assert_kept_out_by(READS_A, 1, FIRST);
    assert_int_equal(release_as(TRY_A), HANDED_OVER);
    assert_pushed(FIRST);
    assert_value("door", FIRST);
}

/* It has the node alone, which is more than it asked for. */
QUEUE_TEST(an_older_client_hands_to_one_who_reads) {
    for (int by_wait = 0; by_wait < 2; by_wait++) {
        start_anew();
        lock_as(FIRST);
        assert_queued(READS_A, 0, FIRST);
        assert_queued(READS_B, 1, FIRST);
        if (by_wait) {
            unlock();
            assert_older_wait(THIRD, "20", "0\n" READER_A "\n");
        } else {
            assert_older_release(FIRST, "2");
        }
        assert_pushed(READER_A);
        assert_value("door", READER_A);
        assert_queued(READS_B, 0, READER_A);
        assert_is(wait_as(READS_A).vote, REDLOCK_VOTE_GRANTED);
        assert_value("door", READER_A);
        if (by_wait) {
            assert_int_equal(release_as(READER_A), HANDED_OVER);
            assert_pushed(READER_B);
            assert_readers(READER_B, NULL);
        } else {
            assert_is(keep_for(READER_A, 0), REDLOCK_VOTE_GRANTED);
            assert_pushed(READER_B);
            assert_readers(READER_A, READER_B, NULL);
        }
    }
}

/* It lets nobody in, so they come in by their next WAIT. */
QUEUE_TEST(an_older_client_that_gives_up_leaves_readers_to_themselves) {
    assert_reads(TRY_A);
    assert_older_wait(FIRST, "10", "0\n(a zset)\n");
    assert_kept_out_by(READS_A, 1, FIRST);
    assert_older_release(FIRST, "-1");
    assert_silence();
    assert_joins(READS_A);
}
