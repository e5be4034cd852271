/* The main program of tests that register themselves. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct test_entry *first, **last = &first;

void test_register(struct test_entry *entry) {
    *last = entry;
    last = &entry->next;
}

/* The name of a value in the enumeration of `sibling`; NULL: neither is known. */
static const char *name_of(long long value, const char *sibling) {
    const struct test_name *known = test_names;
    while (known->name != NULL && strcmp(known->name, sibling) != 0) {
        known++;
    }
    for (const struct test_name *each = test_names; known->name != NULL && each->name != NULL; each++) {
        if (each->enumeration == known->enumeration && each->value == value) {
            return each->name;
        }
    }
    return NULL;
}

void test_assert_is(long long actual, long long expected, const char *what, const char *expected_name, const char *file,
                    int line) {
    if (actual == expected) {
        return;
    }
    const char *name = name_of(actual, expected_name);
    print_error("%s is %s (%lld), not %s\n", what, name == NULL ? "none of these" : name, actual, expected_name);
    _fail(file, line);
}

void test_assert_part(const char *text, const char *part, bool is_in, const char *file, int line) {
    if ((strstr(text, part) != NULL) != is_in) {
        print_error("\"%s\" %s \"%s\"\n", text, is_in ? "does not contain" : "contains", part);
        _fail(file, line);
    }
}

/* Runs the tests up to the next group. Returns how many failed. */
static int run_group(const struct test_entry *group, const struct test_entry **entry) {
    size_t count = 0;
    for (const struct test_entry *each = *entry; each != NULL && each->run != NULL; each = each->next) {
        count++;
    }
    if (count == 0) {
        return 0;
    }
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    if (tests == NULL) {
        perror("no room for the tests");
        return 1;
    }
    for (size_t i = 0; i < count; i++, *entry = (*entry)->next) {
        tests[i] = (struct CMUnitTest){(*entry)->name, (*entry)->run, (*entry)->begin, (*entry)->end, (*entry)->state};
    }
    const int failed = group == NULL ? _cmocka_run_group_tests("tests", tests, count, NULL, NULL)
                                     : _cmocka_run_group_tests(group->name, tests, count, group->begin, group->end);
    free(tests);
    return failed;
}

/* An argument is a pattern: only tests of such names run ("*" is any text, "?" any character). */
int main(int argc, char **argv) {
    if (argc > 2) {
        (void)fprintf(stderr, "usage: %s [PATTERN]\n", argv[0]);
        return 64;
    }
    if (argc == 2) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct test_entry *entry = first;
    int failed = run_group(NULL, &entry);
    while (entry != NULL) {
        const struct test_entry *group = entry;
        entry = entry->next;
        failed += run_group(group, &entry);
    }
    return failed != 0;
}

void test_assert_exited(int status, int code, const char *file, int line) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code) {
        print_error("the process did not end with %d: its status is %#x\n", code, (unsigned)status);
        _fail(file, line);
    }
}

void test_assert_exits(int pid, int code, const char *file, int line) {
    int status = -1;
    if (waitpid(pid, &status, 0) != pid) {
        print_error("there is no process %d\n", pid);
        _fail(file, line);
    }
    test_assert_exited(status, code, file, line);
}
