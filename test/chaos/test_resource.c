/* The guarded resource: with and without fencing, and used by many processes at once. */
#include "client/resource.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
static char path[] = "/tmp/redlock-resource-XXXXXX";

static int set_up(UNUSED void **state) {
    snprintf(path + sizeof path - 7, 7, "XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, CHAOS_RESOURCE_FILE_SIZE), 0);
    return close(fd);
}

static int tear_down(UNUSED void **state) {
    return unlink(path);
}

static struct chaos_resource resource_of(size_t index, int64_t fence) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return (struct chaos_resource){.fd = fd, .index = index, .fencing = fence >= 0, .fence = fence};
}

static void expect_read(const struct chaos_resource *resource, int64_t expected) {
    int64_t count = -1;
    struct chaos_receipt receipt;
    assert_int_equal(chaos_resource_read(resource, &count, &receipt), CHAOS_ACCESS_GRANTED);
    assert_int_equal(count, expected);
}

#define FRESH_TEST(name) TEST_WITH(name, set_up, tear_down)

FRESH_TEST(without_fencing_anyone_writes) {
    struct chaos_resource one = resource_of(3, -1), other = resource_of(4, -1);
    struct chaos_receipt receipt;
    assert_int_equal(chaos_resource_write(&one, 42, &receipt), CHAOS_ACCESS_GRANTED);
    assert_int_equal(receipt.number, 0);
    expect_read(&one, 42);
    expect_read(&other, 0);
    close(one.fd);
    close(other.fd);
}

FRESH_TEST(tokens_are_checked) {
    struct chaos_resource old = resource_of(31, 10), new = resource_of(31, 11), none = resource_of(31, 0);
    struct chaos_receipt receipt;
    int64_t count = -1;
    assert_int_equal(chaos_resource_read(&old, &count, &receipt), CHAOS_ACCESS_GRANTED);
    assert_int_equal(receipt.number, 1);
    assert_int_equal(receipt.highest, 10);
    assert_int_equal(chaos_resource_write(&old, 1, &receipt), CHAOS_ACCESS_GRANTED);
    assert_int_equal(receipt.number, 2);
    /* After a read with a higher token, lower tokens are refused. */
    expect_read(&new, 1);
    assert_int_equal(chaos_resource_write(&old, 2, &receipt), CHAOS_ACCESS_REFUSED);
    assert_int_equal(receipt.highest, 11);
    assert_int_equal(chaos_resource_read(&old, &count, &receipt), CHAOS_ACCESS_REFUSED);
    assert_int_equal(chaos_resource_write(&none, 7, &receipt), CHAOS_ACCESS_REFUSED);
    assert_int_equal(chaos_resource_write(&new, 5, &receipt), CHAOS_ACCESS_GRANTED);
    assert_int_equal(receipt.number, 4);
    expect_read(&new, 5);
    close(old.fd);
    close(new.fd);
    close(none.fd);
}

/* Those who read together may have different tokens, in any order. */
FRESH_TEST(readers_are_compared_with_those_alone) {
    struct chaos_resource writer = resource_of(2, 20), one = resource_of(2, 31), two = resource_of(2, 30),
                          late = resource_of(2, 19), next = resource_of(2, 32);
    struct chaos_receipt receipt;
    int64_t count = -1;
    one.shared = two.shared = late.shared = true;
    assert_int_equal(chaos_resource_write(&writer, 7, &receipt), CHAOS_ACCESS_GRANTED);
    expect_read(&one, 7);
    expect_read(&two, 7);
    assert_int_equal(chaos_resource_read(&late, &count, &receipt), CHAOS_ACCESS_REFUSED);
    assert_int_equal(receipt.highest, 20);
    /* One who writes is compared with all. */
    assert_int_equal(chaos_resource_write(&writer, 8, &receipt), CHAOS_ACCESS_REFUSED);
    assert_int_equal(receipt.highest, 31);
    assert_int_equal(chaos_resource_write(&next, 8, &receipt), CHAOS_ACCESS_GRANTED);
    assert_int_equal(receipt.number, 4);
    assert_int_equal(chaos_resource_read(&one, &count, &receipt), CHAOS_ACCESS_REFUSED);
    assert_int_equal(receipt.highest, 32);
    close(writer.fd);
    close(one.fd);
    close(two.fd);
    close(late.fd);
    close(next.fd);
}

FRESH_TEST(what_breaks_is_told) {
    struct chaos_resource fenced = resource_of(0, 1), plain = resource_of(0, -1);
    struct chaos_receipt receipt;
    int64_t count;
    assert_int_equal(truncate(path, 4), 0);
    assert_int_equal(chaos_resource_read(&fenced, &count, &receipt), CHAOS_ACCESS_BROKEN);
    assert_int_equal(errno, ENODATA);
    assert_int_equal(chaos_resource_read(&plain, &count, &receipt), CHAOS_ACCESS_BROKEN);
    assert_int_equal(errno, ENODATA);
    close(plain.fd);
    close(fenced.fd);
    assert_int_equal(chaos_resource_read(&fenced, &count, &receipt), CHAOS_ACCESS_BROKEN);
    assert_int_equal(errno, EBADF);
    assert_int_equal(chaos_resource_read(&plain, &count, &receipt), CHAOS_ACCESS_BROKEN);
    assert_int_equal(errno, EBADF);
}

enum { PROCESSES = 4, TURNS = 2000 };

/* Reads and writes without any lock. Each token belongs to one turn of one process. Stores the
 * number of granted writes. */
static void race(int process) {
    struct chaos_resource resource = resource_of(0, 0);
    int granted = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        struct chaos_receipt receipt;
        int64_t count;
        resource.fence = (int64_t)turn * PROCESSES + process + 1;
        granted += chaos_resource_read(&resource, &count, &receipt) == CHAOS_ACCESS_GRANTED &&
                   chaos_resource_write(&resource, count + 1, &receipt) == CHAOS_ACCESS_GRANTED;
    }
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int64_t told = granted;
    /* Next to the resource under test. */
    bool worked = pwrite(fd, &told, sizeof told, (off_t)((size_t)(process + 1) * sizeof told)) == sizeof told;
    _exit(worked ? 0 : 1);
}

/* However the processes race, no granted write is lost. */
FRESH_TEST(no_update_is_lost) {
    pid_t pids[PROCESSES];
    for (int p = 0; p < PROCESSES; p++) {
        pids[p] = fork();
        assert_true(pids[p] >= 0);
        if (pids[p] == 0) {
            race(p);
        }
    }
    int64_t granted = 0;
    for (int p = 0; p < PROCESSES; p++) {
        assert_exits(pids[p], 0);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int p = 0; p < PROCESSES; p++) {
        int64_t told;
        assert_int_equal(pread(fd, &told, sizeof told, (off_t)((size_t)(p + 1) * sizeof told)), sizeof told);
        granted += told;
    }
    close(fd);
    struct chaos_resource last = resource_of(0, INT64_MAX);
    expect_read(&last, granted);
    assert_true(granted > 0);
    close(last.fd);
}
