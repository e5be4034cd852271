/* Random bytes from the kernel. */
#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <redlock/redlock.h>

struct redlock_random *redlock_random_new(void) {
    struct redlock_random *random = malloc(sizeof *random);
    if (random == NULL) {
        return NULL;
    }
    random->pool = mmap(NULL, sizeof *random->pool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (random->pool == MAP_FAILED) {
        free(random);
        return NULL;
    }
    random->pid = madvise(random->pool, sizeof *random->pool, MADV_WIPEONFORK) == 0 ? 0 : getpid();
    random->pool->ours = 1;
    return random;
}

void redlock_random_delete(struct redlock_random *random) {
    if (random == NULL) {
        return;
    }
    (void)munmap(random->pool, sizeof *random->pool);
    free(random);
}

/* GRND_NONBLOCK: a loop must not hang on a kernel that has no entropy yet. */
static bool fill(unsigned char *bytes, size_t size) {
    while (size > 0) {
        ssize_t got = getrandom(bytes, size, GRND_NONBLOCK);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

int redlock_random_bytes(struct redlock_random *random, void *buffer, size_t size) {
    struct redlock_random_pool *pool = random->pool;
    if (redlock_random_forked(random)) {
        return REDLOCK_ERR_FORKED;
    }
    if (size == 0) {
        return 0; /* the caller asked only about the fork */
    }
    if (size > sizeof pool->bytes) {
        return REDLOCK_ERR_RANDOM;
    }
    if (pool->left < size) {
        pool->left = 0;
        if (!fill(pool->bytes, sizeof pool->bytes)) {
            return REDLOCK_ERR_RANDOM;
        }
        pool->left = sizeof pool->bytes;
    }
    unsigned char *taken = pool->bytes + (sizeof pool->bytes - pool->left);
    memcpy(buffer, taken, size);
    memset(taken, 0, size); /* no byte is used twice */
    pool->left -= size;
    return 0;
}
