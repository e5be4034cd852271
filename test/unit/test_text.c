/* Shared error texts: counted, constants never freed, NULL harmless; each has a cause. */
#include "base/text.h"
#include "test.h"

TEST(a_text_lives_until_its_last_reference) {
    struct redlock_text *text = redlock_text_new(REDLOCK_CAUSE_STALLED, "%s is %d", "one", 1);
    assert_string_equal(redlock_text_string(text), "one is 1");
    assert_is(redlock_text_cause(text), REDLOCK_CAUSE_STALLED);
    assert_ptr_equal(redlock_text_keep(text), text);
    redlock_text_drop(text);
    assert_string_equal(redlock_text_string(text), "one is 1");
    redlock_text_drop(text);
}

TEST(no_text_is_an_empty_one) {
    assert_null(redlock_text_keep(NULL));
    redlock_text_drop(NULL);
    assert_string_equal(redlock_text_string(NULL), "");
    assert_is(redlock_text_cause(NULL), REDLOCK_CAUSE_NONE);
}

TEST(a_constant_is_never_counted) {
    static const struct redlock_text constant = {.string = "always", .cause = REDLOCK_CAUSE_OURS};
    struct redlock_text *text = redlock_text_constant(&constant);
    assert_ptr_equal(redlock_text_keep(text), &constant);
    for (int i = 0; i < 3; i++) {
        redlock_text_drop(text);
    }
    assert_string_equal(redlock_text_string(text), "always");
    assert_is(redlock_text_cause(text), REDLOCK_CAUSE_OURS);
    assert_int_equal(constant.references, 0);
}
