/* The main program of tests that register themselves. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct test_entry *first, **last = &first;

void test_register(struct test_entry *entry) {
    *last = entry;
    last = &entry->next;
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
