/* Shared error texts: counted, constants never freed, NULL harmless; each has a cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void a_text_lives_until_its_last_reference(void **state) {
    (void)state;
    struct redlock_text *text = redlock_text_new(REDLOCK_CAUSE_STALLED, "%s is %d", "one", 1);
    assert_string_equal(redlock_text_string(text), "one is 1");
    assert_int_equal(redlock_text_cause(text), REDLOCK_CAUSE_STALLED);
    assert_ptr_equal(redlock_text_keep(text), text);
    redlock_text_drop(text);
    assert_string_equal(redlock_text_string(text), "one is 1");
    redlock_text_drop(text);
}

static void no_text_is_an_empty_one(void **state) {
    (void)state;
    assert_null(redlock_text_keep(NULL));
    redlock_text_drop(NULL);
    assert_string_equal(redlock_text_string(NULL), "");
    assert_int_equal(redlock_text_cause(NULL), REDLOCK_CAUSE_NONE);
}

static void a_constant_is_never_counted(void **state) {
    static const struct redlock_text constant = {.string = "always", .cause = REDLOCK_CAUSE_OURS};
    (void)state;
    struct redlock_text *text = redlock_text_constant(&constant);
    assert_ptr_equal(redlock_text_keep(text), &constant);
    for (int i = 0; i < 3; i++) {
        redlock_text_drop(text);
    }
    assert_string_equal(redlock_text_string(text), "always");
    assert_int_equal(redlock_text_cause(text), REDLOCK_CAUSE_OURS);
    assert_int_equal(constant.references, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_lives_until_its_last_reference),
        cmocka_unit_test(no_text_is_an_empty_one),
        cmocka_unit_test(a_constant_is_never_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
