/* Random bytes: new ones each time, and none in a forked child (R10). */
#include "test.h"
#include <sys/wait.h>
#include <unistd.h>

#include <redlock/redlock.h>

#include "base/random.h"

TEST(no_bytes_twice) {
    enum { DRAWS = 3000 };
    static unsigned char drawn[DRAWS][16];
    struct redlock_random *random = redlock_random_new();
    assert_non_null(random);
    for (int i = 0; i < DRAWS; i++) {
        assert_int_equal(redlock_random_bytes(random, drawn[i], sizeof drawn[i]), 0);
    }
    for (int i = 0; i < DRAWS; i++) {
        for (int j = i + 1; j < DRAWS; j++) {
            assert_memory_not_equal(drawn[i], drawn[j], 16);
        }
    }
    assert_false(redlock_random_forked(random));
    assert_int_equal(redlock_random_bytes(random, NULL, 0), 0);
    redlock_random_delete(random);
}

TEST(a_child_gets_none) {
    unsigned char bytes[16], before[16];
    struct redlock_random *random = redlock_random_new();
    assert_non_null(random);
    assert_int_equal(redlock_random_bytes(random, before, sizeof before), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(redlock_random_forked(random) && redlock_random_bytes(random, bytes, 16) == REDLOCK_ERR_FORKED &&
                      redlock_random_bytes(random, NULL, 0) == REDLOCK_ERR_FORKED
                  ? 0
                  : 1);
    }
    assert_exits(child, 0);
    assert_int_equal(redlock_random_bytes(random, bytes, sizeof bytes), 0);
    assert_memory_not_equal(bytes, before, sizeof bytes);
    redlock_random_delete(random);
}
