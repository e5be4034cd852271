/* Makes and checks the seals of pushes. */
#include "group/seal.h"

#include <string.h>

#include "base/siphash.h"
#include "core/validity.h"

/* What is hashed. It has no padding. */
struct sealed {
    int64_t period;
    uint32_t node, id, round, token_size;
    char token_and_key[REDLOCK_TOKEN_SIZE_MAX + REDLOCK_RESOURCE_SIZE_MAX];
};

#define HEAD_SIZE offsetof(struct sealed, token_and_key)

/* Returns its size. */
static size_t fill(struct sealed *sealed, const struct redlock_push *push, int64_t now_ns) {
    memset(sealed, 0, HEAD_SIZE);
    sealed->period = now_ns / (REDLOCK_SEAL_PERIOD_MS * REDLOCK_NS_PER_MS);
    sealed->id = push->id;
    sealed->round = push->round;
    sealed->token_size = (uint32_t)push->token_size;
    memcpy(sealed->token_and_key, push->token, push->token_size);
    memcpy(sealed->token_and_key + push->token_size, push->key, push->key_size);
    return HEAD_SIZE + push->token_size + push->key_size;
}

void redlock_seal_make(const uint64_t secret[2], redlock_nodes nodes, const struct redlock_push *push, int64_t now_ns,
                       uint64_t *seals) {
    struct sealed sealed;
    const size_t size = fill(&sealed, push, now_ns);
    for (; nodes != 0; nodes &= nodes - 1) {
        sealed.node = redlock_nodes_first(nodes);
        seals[sealed.node] = redlock_siphash(secret, &sealed, size);
    }
}

bool redlock_seal_fits(const uint64_t secret[2], unsigned node, const struct redlock_push *push, int64_t now_ns) {
    struct sealed sealed;
    const size_t size = fill(&sealed, push, now_ns);
    sealed.node = node;
    if (redlock_siphash(secret, &sealed, size) == push->seal) {
        return true;
    }
    sealed.period--;
    return redlock_siphash(secret, &sealed, size) == push->seal;
}
