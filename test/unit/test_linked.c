/* The doubly linked list: its order, and entries that leave it. */
#include "base/list.h"
#include "test.h"

#define COUNT 4

struct thing {
    char name;
    struct redlock_list_entry entry;
};

static struct redlock_list list;
static struct thing things[COUNT];

static int setup(UNUSED void **state) {
    redlock_list_init(&list);
    for (unsigned i = 0; i < COUNT; i++) {
        things[i] = (struct thing){.name = (char)('a' + i)};
        redlock_list_append(&list, &things[i].entry);
    }
    return 0;
}

#define LIST_TEST(name) TEST_WITH(name, setup, NULL)

static void assert_list(const struct redlock_list *read, const char *expected) {
    char names[COUNT + 1] = "";
    size_t count = 0;
    REDLOCK_LIST_EACH(at, read) {
        assert_true(count < COUNT && redlock_list_is_in(at));
        assert_true(at->next->previous == at && at->previous->next == at);
        names[count++] = REDLOCK_CONTAINER(at, struct thing, entry)->name;
    }
    assert_string_equal(names, expected);
    assert_int_equal(redlock_list_is_empty(read), count == 0);
    assert_ptr_equal(redlock_list_first(read), count == 0 ? NULL : &things[names[0] - 'a'].entry);
}

LIST_TEST(entries_keep_their_order) {
    static struct redlock_list other = REDLOCK_LIST_EMPTY(other);
    assert_list(&list, "abcd");
    assert_list(&other, "");
    assert_ptr_equal(redlock_list_next(&list, &things[0].entry), &things[1].entry);
    assert_null(redlock_list_next(&list, &things[3].entry));
    for (unsigned i = 0; i < COUNT; i++) {
        assert_ptr_equal(redlock_list_pop(&list), &things[i].entry);
        assert_false(redlock_list_is_in(&things[i].entry));
        redlock_list_prepend(&other, &things[i].entry);
    }
    assert_null(redlock_list_pop(&list));
    assert_list(&list, "");
    assert_list(&other, "dcba");
}

LIST_TEST(any_entry_may_leave) {
    static const struct {
        unsigned leaves;
        const char *left;
    } steps[] = {{1, "acd"}, {0, "cd"}, {3, "c"}, {2, ""}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        redlock_list_remove(&things[steps[i].leaves].entry);
        assert_list(&list, steps[i].left);
    }
    redlock_list_append(&list, &things[1].entry);
    redlock_list_prepend(&list, &things[3].entry);
    assert_list(&list, "db");
}
