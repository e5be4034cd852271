/* The guarded resource: a shared counter in a file, which a lease is to protect, and which can
 * check fencing tokens itself. */
#ifndef CHAOS_RESOURCE_H
#define CHAOS_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A file of little 8-byte integers: CHAOS_RESOURCES_MAX counters, then for each resource the
 * highest token that it has seen, the number of accesses that it has granted, and the highest token
 * of those who have the lock alone.
 *
 * Without fencing nothing stands between two writers: the counter is read and written as it is, and
 * a lost update shows. With fencing each access tells its token; the resource takes it, in one step
 * with the access, if and only if it has seen no higher one. Reads count, too: who writes what
 * follows from a read must know that nobody wrote in between. With writes alone an old holder's
 * write could come between a new holder's read and its write, and be lost without any stale write.
 *
 * Who reads under a shared lease is compared with those who have the lock alone: others who read at
 * that time may have higher tokens (docs/fencing.md).
 */
enum { CHAOS_RESOURCE_FILE_SIZE = 32 * 4 * 8 };

struct chaos_resource {
    int fd;
    size_t index;  /* from 0 */
    bool fencing;  /* false: nothing below counts */
    int64_t fence; /* of the lease under which it is accessed */
    bool shared;   /* and its mode */
};

enum chaos_access {
    CHAOS_ACCESS_GRANTED,
    CHAOS_ACCESS_REFUSED,
    CHAOS_ACCESS_BROKEN /* errno says why */
};

/* What the resource says of itself, beside the access; with fencing only. */
struct chaos_receipt {
    int64_t number;  /* of this access, among those that the resource has granted, from 1 */
    int64_t highest; /* the highest token that it has seen, among those with which it compares */
};

enum chaos_access chaos_resource_read(const struct chaos_resource *resource, int64_t *count,
                                      struct chaos_receipt *receipt);
enum chaos_access chaos_resource_write(const struct chaos_resource *resource, int64_t count,
                                       struct chaos_receipt *receipt);

#endif
