/* The guarded resource: a shared counter in a file, which a lease is to protect, and which can
 * check fencing tokens itself. */
#include "client/resource.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "faults/fault.h"

enum { NUMBER = sizeof(uint64_t) };

static_assert(CHAOS_RESOURCE_FILE_SIZE == 3 * CHAOS_RESOURCES_MAX * NUMBER, "all parts have room");

static off_t place_of_counter(const struct chaos_resource *resource) {
    return (off_t)(resource->index * NUMBER);
}

static off_t place_of_seen(const struct chaos_resource *resource) {
    return (off_t)((CHAOS_RESOURCES_MAX + 2 * resource->index) * NUMBER);
}

static bool read_numbers(const struct chaos_resource *resource, off_t place, uint64_t *numbers, size_t count) {
    ssize_t size = pread(resource->fd, numbers, count * NUMBER, place);
    if (size != (ssize_t)(count * NUMBER)) {
        errno = size < 0 ? errno : ENODATA;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        numbers[i] = le64toh(numbers[i]);
    }
    return true;
}

static bool write_numbers(const struct chaos_resource *resource, off_t place, uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        numbers[i] = htole64(numbers[i]);
    }
    ssize_t size = pwrite(resource->fd, numbers, count * NUMBER, place);
    if (size != (ssize_t)(count * NUMBER)) {
        errno = size < 0 ? errno : ENOSPC;
        return false;
    }
    return true;
}

/*
 * One access of the resource at a time, by whichever process: the kernel ends the turn of one that
 * dies in it. One that is stopped in its turn, which lasts microseconds, keeps the others waiting;
 * their tokens are checked when they come.
 */
static bool set_turn(const struct chaos_resource *resource, short type) {
    struct flock turn = {.l_type = type, .l_whence = SEEK_SET, .l_start = place_of_seen(resource), .l_len = 2 * NUMBER};
    int failed;
    do {
        failed = fcntl(resource->fd, F_OFD_SETLKW, &turn);
    } while (failed != 0 && errno == EINTR);
    return failed == 0;
}

/* In its turn: the token is checked, and what the resource has seen is raised before the access, so
 * that a death in between lets no older one in. */
static enum chaos_access check(const struct chaos_resource *resource, struct chaos_receipt *receipt) {
    uint64_t seen[2]; /* the highest token, the number of accesses */
    if (!read_numbers(resource, place_of_seen(resource), seen, 2)) {
        return CHAOS_ACCESS_BROKEN;
    }
    uint64_t fence = (uint64_t)resource->fence;
    *receipt = (struct chaos_receipt){.number = (int64_t)seen[1] + 1, .highest = (int64_t)seen[0]};
    if (fence < seen[0]) {
        return CHAOS_ACCESS_REFUSED;
    }
    uint64_t now[2] = {fence, seen[1] + 1};
    receipt->highest = resource->fence;
    return write_numbers(resource, place_of_seen(resource), now, 2) ? CHAOS_ACCESS_GRANTED : CHAOS_ACCESS_BROKEN;
}

static enum chaos_access move(const struct chaos_resource *resource, int64_t *count, bool write) {
    uint64_t number = (uint64_t)*count;
    if (!(write ? write_numbers : read_numbers)(resource, place_of_counter(resource), &number, 1)) {
        return CHAOS_ACCESS_BROKEN;
    }
    *count = write ? *count : (int64_t)number;
    return CHAOS_ACCESS_GRANTED;
}

static enum chaos_access access_counter(const struct chaos_resource *resource, int64_t *count, bool write,
                                        struct chaos_receipt *receipt) {
    *receipt = (struct chaos_receipt){0};
    if (!resource->fencing) {
        return move(resource, count, write);
    }
    if (!set_turn(resource, F_WRLCK)) {
        return CHAOS_ACCESS_BROKEN;
    }
    enum chaos_access access = check(resource, receipt);
    if (access == CHAOS_ACCESS_GRANTED) {
        access = move(resource, count, write);
    }
    int why = errno;
    bool ended = set_turn(resource, F_UNLCK);
    errno = access == CHAOS_ACCESS_BROKEN ? why : errno;
    return ended ? access : CHAOS_ACCESS_BROKEN;
}

enum chaos_access chaos_resource_read(const struct chaos_resource *resource, int64_t *count,
                                      struct chaos_receipt *receipt) {
    return access_counter(resource, count, false, receipt);
}

enum chaos_access chaos_resource_write(const struct chaos_resource *resource, int64_t count,
                                       struct chaos_receipt *receipt) {
    return access_counter(resource, &count, true, receipt);
}
