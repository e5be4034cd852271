/* What is said of an argument that is refused. */
#include "test.h"
#include <redlock/redlock.h>

#include "base/check.h"

static char text[REDLOCK_INVALID_SIZE];
static struct redlock_error_text failure = {text, sizeof text};

#define says(sentence, check)                                                                                          \
    do {                                                                                                               \
        text[0] = '\0';                                                                                                \
        assert_is(check, REDLOCK_ERR_INVALID);                                                                         \
        assert_string_equal(text, sentence);                                                                           \
    } while (0)
#define passes(check)                                                                                                  \
    do {                                                                                                               \
        text[0] = '\0';                                                                                                \
        assert_is(check, REDLOCK_OK);                                                                                  \
        assert_string_equal(text, "");                                                                                 \
    } while (0)

TEST(a_number_has_a_range) {
    passes(redlock_check_range(&failure, "n", 1, 1, 3, ""));
    passes(redlock_check_range(&failure, "n", 3, 1, 3, ""));
    says("n is 0; it must be 1 to 3", redlock_check_range(&failure, "n", 0, 1, 3, ""));
    says("n is 4; it must be 1 to 3, or 9", redlock_check_range(&failure, "n", 4, 1, 3, ", or 9"));
    says("n is -9223372036854775808; it must be 0 or more (0: none)",
         redlock_check_range(&failure, "n", INT64_MIN, 0, INT64_MAX, " (0: none)"));
    passes(redlock_check_range(&failure, "n", INT64_MAX, 0, INT64_MAX, ""));
}

TEST(a_text_has_a_size_and_bytes) {
    passes(redlock_check_size(&failure, "t", 0, 0, 2, ""));
    passes(redlock_check_size(&failure, "t", 2, 0, 2, ""));
    says("t has 3 bytes; it must have 1 to 2", redlock_check_size(&failure, "t", 3, 1, 2, ""));
    says("t has 0 bytes; it must have 1 to 2 beside x", redlock_check_size(&failure, "t", 0, 1, 2, " beside x"));
    passes(redlock_check_word(&failure, "w", "ab~", 1, 3));
    says("w is NULL", redlock_check_word(&failure, "w", NULL, 1, 3));
    says("w has 4 bytes; it must have 1 to 3", redlock_check_word(&failure, "w", "abcd", 1, 3));
    says("w has a space or a byte that is not printable ASCII at position 2",
         redlock_check_word(&failure, "w", "a b", 1, 3));
    says("w has a space or a byte that is not printable ASCII at position 1",
         redlock_check_word(&failure, "w", "\x7f", 1, 3));
}

TEST(an_enumerator_is_one_of_its_type) {
    passes(redlock_check_enum(&failure, "order", 0, 1, "redlock_order"));
    passes(redlock_check_enum(&failure, "order", 1, 1, "redlock_order"));
    says("order is 2; it must be a redlock_order", redlock_check_enum(&failure, "order", 2, 1, "redlock_order"));
    says("order is -1; it must be a redlock_order", redlock_check_enum(&failure, "order", -1, 1, "redlock_order"));
}

TEST(a_struct_has_its_size) {
    struct {
        size_t size;
        int a, b;
    } known = {sizeof known, 1, 2}, given = {sizeof given, 5, 6};
    char sentence[REDLOCK_INVALID_SIZE];
    passes(redlock_check_options(&failure, "x", &known, sizeof known, NULL));
    assert_int_equal(known.a, 1);
    given.size = sizeof(size_t) + sizeof(int); /* an older program's */
    passes(redlock_check_options(&failure, "x", &known, sizeof known, &given));
    assert_int_equal(known.a, 5);
    assert_int_equal(known.b, 2);
    given.size = 0;
    snprintf(sentence, sizeof sentence,
             "options.size is 0; it must be %zu to %zu: call x_default() first, and build against the header of this "
             "library or an older one",
             sizeof(size_t) + 1, sizeof known);
    says(sentence, redlock_check_options(&failure, "x", &known, sizeof known, &given));
    given.size = sizeof &given; /* a slip of the pen for sizeof given */
    assert_is(redlock_check_options(&failure, "x", &known, sizeof known, &given), REDLOCK_ERR_INVALID);
    assert_int_equal(known.a, 5);
    assert_int_equal(known.b, 2);
    given.size = sizeof known + 1;
    assert_is(redlock_check_options(&failure, "x", &known, sizeof known, &given), REDLOCK_ERR_INVALID);
    assert_int_equal(known.b, 2);
}

TEST(as_much_is_filled_in_as_fits) {
    struct {
        size_t size;
        int a, b;
    } known = {sizeof known, 1, 2}, given = {0, 5, 6};
    struct {
        size_t size;
        int a, b, newer;
    } longer = {sizeof longer, 5, 6, 7};
    says("info is NULL", redlock_check_struct(&failure, "info", NULL));
    says("info.size is 0; set it to the size of the struct before the call",
         redlock_check_struct(&failure, "info", &given));
    given.size = sizeof &given;
    assert_is(redlock_check_struct(&failure, "info", &given), REDLOCK_ERR_INVALID);
    assert_contains(text, "; set it to the size of the struct before the call");
    given.size = sizeof(size_t) + 1;
    passes(redlock_check_struct(&failure, "info", &given));
    given.size = sizeof given;
    passes(redlock_check_struct(&failure, "info", &given));
    redlock_fill_struct(&given, &known, sizeof known);
    assert_memory_equal(&given, &known, sizeof known);
    given.b = 6;
    given.size = sizeof(size_t) + sizeof(int); /* an older program's */
    passes(redlock_check_struct(&failure, "info", &given));
    redlock_fill_struct(&given, &known, sizeof known);
    assert_int_equal(given.size, sizeof(size_t) + sizeof(int));
    assert_int_equal(given.b, 6);
    redlock_fill_struct(&longer, &known, sizeof known);
    assert_int_equal(longer.size, sizeof known);
    assert_int_equal(longer.b, 2);
    assert_int_equal(longer.newer, 7);
}

TEST(a_pointer_that_is_needed_is_given) {
    passes(redlock_check_given(&failure, "cb", true));
    says("cb is NULL", redlock_check_given(&failure, "cb", false));
}

TEST(without_room_only_the_code_tells) {
    struct redlock_error_text nowhere = {NULL, 0}, small = {text, 5};
    assert_is(redlock_check_range(&nowhere, "n", 0, 1, 3, ""), REDLOCK_ERR_INVALID);
    assert_is(redlock_check_range(&small, "n", 0, 1, 3, ""), REDLOCK_ERR_INVALID);
    assert_string_equal(text, "n is");
}
