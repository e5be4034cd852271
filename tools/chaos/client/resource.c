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
/* What is kept of each resource beside its counter. */
enum { HIGHEST, ACCESSES, HIGHEST_ALONE, SEEN };

static_assert(CHAOS_RESOURCE_FILE_SIZE == 4 * CHAOS_RESOURCES_MAX * NUMBER, "all parts have room");

static off_t place_of_counter(const struct chaos_resource *resource) {
    return (off_t)(resource->index * NUMBER);
}

static off_t place_of_seen(const struct chaos_resource *resource) {
    return (off_t)((CHAOS_RESOURCES_MAX + SEEN * resource->index) * NUMBER);
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
    struct flock turn = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = place_of_seen(resource), .l_len = SEEN * NUMBER};
    int failed;
    do {
        failed = fcntl(resource->fd, F_OFD_SETLKW, &turn);
    } while (failed != 0 && errno == EINTR);
    return failed == 0;
}

/* In its turn: the token is checked, and what the resource has seen is raised before the access, so
 * that a death in between lets no older one in. */
static enum chaos_access check(const struct chaos_resource *resource, struct chaos_receipt *receipt) {
    uint64_t seen[SEEN];
    if (!read_numbers(resource, place_of_seen(resource), seen, SEEN)) {
        return CHAOS_ACCESS_BROKEN;
    }
    uint64_t fence = (uint64_t)resource->fence, highest = seen[resource->shared ? HIGHEST_ALONE : HIGHEST];
    *receipt = (struct chaos_receipt){.number = (int64_t)seen[ACCESSES] + 1, .highest = (int64_t)highest};
    if (fence < highest) {
        return CHAOS_ACCESS_REFUSED;
    }
    seen[HIGHEST] = fence > seen[HIGHEST] ? fence : seen[HIGHEST];
    seen[HIGHEST_ALONE] = resource->shared ? seen[HIGHEST_ALONE] : fence;
    seen[ACCESSES]++;
    receipt->highest = resource->fence;
    return write_numbers(resource, place_of_seen(resource), seen, SEEN) ? CHAOS_ACCESS_GRANTED : CHAOS_ACCESS_BROKEN;
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
