/* Tests that register themselves: a program runs its tests in the order of their text. With what
 * every test includes. */
#ifndef TEST_SUPPORT_TEST_H
#define TEST_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNUSED __attribute__((unused))

/* An initializer of several on a line: static const char *const bad[] = LIST("", "1s "); */
#define LIST(...)                                                                                                      \
    { __VA_ARGS__ }

/* A test, or (without `run`) the begin and the end of a group: of the tests that follow it. */
struct test_entry {
    const char *name;
    void (*run)(void **state);
    int (*begin)(void **state), (*end)(void **state);
    void *state;
    struct test_entry *next;
};

/* In the order of registration. The entry stays the caller's, and must stay where it is. */
void test_register(struct test_entry *entry);

#define TEST_ENTRY(id, ...)                                                                                            \
    __attribute__((constructor)) static void id##_is_registered(void) {                                                \
        static struct test_entry entry = {__VA_ARGS__};                                                                \
        test_register(&entry);                                                                                         \
    }

/* TEST(name) { … }: a test; with a setup and a teardown of its own (each may be NULL), and with a
 * state that the setup gets. */
#define TEST_FROM(test, setup, teardown, prestate)                                                                     \
    static void test(void **state);                                                                                    \
    TEST_ENTRY(test, #test, test, setup, teardown, prestate, NULL)                                                     \
    static void test(UNUSED void **state)
/* A test that has what it mostly needs as parameters: `...` declares them, `values` is "(a, b)" and
 * may use `state`. */
#define TEST_HAS(test, setup, teardown, prestate, values, ...)                                                         \
    static void test##_with(__VA_ARGS__);                                                                              \
    TEST_FROM(test, setup, teardown, prestate) {                                                                       \
        test##_with values;                                                                                            \
    }                                                                                                                  \
    static void test##_with(__VA_ARGS__)
#define TEST_WITH(test, setup, teardown) TEST_FROM(test, setup, teardown, NULL)
#define TEST(test)                       TEST_WITH(test, NULL, NULL)

/* `begin` runs before the first of the tests that follow, `end` after the last. May be NULL. */
#define TESTS_WITH(begin, end)                                                                                         \
    TEST_ENTRY(begin##_with_##end, "the group of " #begin, NULL, begin, end, NULL, NULL) struct tests_follow

/* The same as assert_int_equal(), for constants of enumerations. A failure shows names. */
#define assert_is(actual, expected)                                                                                    \
    test_assert_is((long long)(actual), (long long)(expected), #actual, #expected, __FILE__, __LINE__)
void test_assert_is(long long actual, long long expected, const char *what, const char *expected_name, const char *file,
                    int line);

/* `text` has `part` in it, or has it not. A failure shows both. */
#define assert_contains(text, part) test_assert_part(text, part, true, __FILE__, __LINE__)
#define assert_lacks(text, part)    test_assert_part(text, part, false, __FILE__, __LINE__)
void test_assert_part(const char *text, const char *part, bool is_in, const char *file, int line);

/* The process ends, or has ended with this status of waitpid(), by itself and with this code. */
#define assert_exits(pid, code)     test_assert_exits(pid, code, __FILE__, __LINE__)
#define assert_exited(status, code) test_assert_exited(status, code, __FILE__, __LINE__)
void test_assert_exits(int pid, int code, const char *file, int line);
void test_assert_exited(int status, int code, const char *file, int line);

/* The constants of all enumerations; the last has no name. */
struct test_name {
    const char *name;
    long long value;
    int enumeration;
};
extern const struct test_name test_names[];

#endif
