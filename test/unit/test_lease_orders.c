/* Acquire, wait, extend and release on up to five nodes: all votes in all orders, compared with a
 * count. */
#include "life.h"

#define NODES 5

struct tally {
    unsigned n, granted, denied, silent; /* silent: FAILED or UNKNOWN */
    redlock_nodes failed;
    bool decided; /* before this vote */
};

static unsigned lives; /* lives played to the end */

static bool is_won(const struct tally *tally) {
    return 2 * tally->granted > tally->n;
}

static bool is_lost(const struct tally *tally) {
    return 2 * (tally->n - tally->denied - tally->silent) <= tally->n;
}

/* Most nodes answered. */
static bool is_answered(const struct tally *tally) {
    return 2 * (tally->granted + tally->denied) > tally->n;
}

/* Most nodes will not answer. */
static bool is_silent(const struct tally *tally) {
    return 2 * (tally->n - tally->silent) <= tally->n;
}

static bool is_denied(const struct tally *tally) {
    return 2 * (tally->n - tally->denied) <= tally->n;
}

static bool is_complete(const struct tally *tally) {
    return tally->granted + tally->denied + tally->silent == tally->n;
}

static void check_acquire(const struct life *life, const struct tally *tally) {
    const redlock_nodes not_failed = redlock_nodes_all(tally->n) & ~tally->failed;
    if (tally->decided) {
        life_check(life, is_won(tally) ? REDLOCK_LEASE_HELD : REDLOCK_LEASE_ENDED, (struct redlock_actions){NOTHING},
                   __FILE__, __LINE__);
    } else if (is_won(tally)) {
        life_expect(life, HELD, ACQUIRED(OK));
    } else if (is_lost(tally) && is_answered(tally)) {
        life_expect(life, ENDED, .cleanup = not_failed, ACQUIRED(ERR_CONTENDED));
    } else if (is_lost(tally) && is_silent(tally)) {
        life_expect(life, ENDED, .cleanup = not_failed, ACQUIRED(ERR_NO_QUORUM));
    } else {
        life_expect(life, ACQUIRING, NOTHING);
    }
    if (is_won(tally)) {
        assert_int_equal(life->core.keys.to_release, not_failed);
    }
    assert_int_equal(life_held_until_ms(life), is_won(tally) ? END_MS : -1);
}

static void check_extend(const struct life *life, const struct tally *tally, enum redlock_lease_state before) {
    const redlock_nodes all = redlock_nodes_all(tally->n);
    if (before == REDLOCK_LEASE_LOST) {
        life_expect(life, LOST, NOTHING);
    } else if (is_denied(tally) && tally->decided) {
        life_expect(life, LOST, .cleanup = all, .lost = true, .lost_by_votes = true);
    } else if (is_denied(tally)) {
        life_expect(life, LOST, .cleanup = all, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
    } else if (tally->decided) {
        life_expect(life, HELD, NOTHING);
    } else if (is_won(tally)) {
        life_expect(life, HELD, EXTENDED(OK));
    } else if (is_lost(tally)) {
        life_expect(life, HELD, EXTENDED(ERR_NO_QUORUM));
    } else {
        life_expect(life, EXTENDING, NOTHING);
    }
    const int64_t until_ms = is_won(tally) ? 1000 + END_MS : END_MS;
    assert_int_equal(life_held_until_ms(life), is_denied(tally) ? -1 : until_ms);
}

static void check_release(const struct life *life, const struct tally *tally) {
    if (tally->decided) {
        life_expect(life, ENDED, NOTHING);
    } else if (is_won(tally)) {
        life_expect(life, ENDED, RELEASED(OK));
    } else if (is_denied(tally)) {
        life_expect(life, ENDED, RELEASED(ERR_LOST));
    } else if (is_complete(tally)) {
        life_expect(life, ENDED, RELEASED(ERR_NO_QUORUM));
    } else {
        life_expect(life, RELEASING, NOTHING);
    }
}

/* A place that is not granted stays, whatever else the nodes say. */
static void check_wait(struct life *life, const struct tally *tally) {
    if (is_won(tally) && !tally->decided) {
        life_expect(life, HELD, ACQUIRED(OK));
    } else {
        life_check(life, is_won(tally) ? REDLOCK_LEASE_HELD : REDLOCK_LEASE_QUEUED, (struct redlock_actions){NOTHING},
                   __FILE__, __LINE__);
        assert_true(redlock_lease_next_ns(&life->core) != REDLOCK_NEVER_NS);
    }
    assert_int_equal(life->core.keys.to_release, redlock_nodes_all(tally->n) & ~tally->failed);
    assert_int_equal(life_held_until_ms(life), is_won(tally) ? END_MS : -1);
    assert_int_equal(redlock_nodes_count(life_queue(life)->granted), tally->granted);
    assert_true(!is_won(tally) || redlock_lease_backing_nodes(&life->core) == life_queue(life)->granted);
}

static void play(const struct life *life, struct tally tally, redlock_nodes pending, enum redlock_operation operation) {
    lives += pending == 0;
    /* A release is LOST only if the votes prove it; else it waits for all nodes (R15). A lost
     * acquire ends as soon as the votes decide its code (R13). */
    if (operation == REDLOCK_OP_RELEASE) {
        tally.decided = is_won(&tally) || is_denied(&tally);
    } else if (operation == REDLOCK_OP_ACQUIRE) {
        tally.decided = is_won(&tally) || (is_lost(&tally) && (is_answered(&tally) || is_silent(&tally)));
    } else if (operation == REDLOCK_OP_WAIT) {
        tally.decided = is_won(&tally);
    } else {
        tally.decided = is_won(&tally) || is_lost(&tally);
    }
    for (unsigned node = 0; node < tally.n; node++) {
        for (int vote = G; (pending & REDLOCK_NODE(node)) != 0 && vote <= U; vote++) {
            struct life next = *life;
            struct tally count = tally;
            count.granted += vote == G;
            count.denied += vote == D;
            count.silent += vote == F || vote == U;
            count.failed |= vote == F ? REDLOCK_NODE(node) : 0;
            life_vote(&next, node, vote);
            if (operation == REDLOCK_OP_ACQUIRE) {
                check_acquire(&next, &count);
            } else if (operation == REDLOCK_OP_WAIT) {
                check_wait(&next, &count);
            } else if (operation == REDLOCK_OP_EXTEND) {
                check_extend(&next, &count, life->core.state);
            } else {
                check_release(&next, &count);
            }
            play(&next, count, pending & ~REDLOCK_NODE(node), operation);
        }
    }
}

static void play_all(enum redlock_operation operation) {
    static const unsigned expected[] = {0, 4, 2 * 16, 6 * 64, 24 * 256, 120 * 1024};
    for (unsigned n = 1; n <= NODES; n++) {
        struct life life;
        const bool acquires = operation == REDLOCK_OP_ACQUIRE || operation == REDLOCK_OP_WAIT;
        life_init(&life, n);
        if (operation == REDLOCK_OP_WAIT) {
            life_may_queue(&life);
            life.in_line = true;
            life.view = (struct redlock_grants_view){.holder = REDLOCK_HOLDER_LATER, .holder_id = 9, .pttl_ms = TTL_MS};
        }
        life_begin(&life);
        for (unsigned i = 0; !acquires && i < n; i++) {
            life_vote(&life, i, G);
        }
        life.at_ms = acquires ? 0 : 1000;
        if (operation == REDLOCK_OP_EXTEND) {
            life_extend(&life, TTL_MS);
        }
        if (operation == REDLOCK_OP_RELEASE) {
            life_release(&life);
        }
        lives = 0;
        play(&life, (struct tally){.n = n}, redlock_nodes_all(n), operation);
        assert_int_equal(lives, expected[n]);
    }
}

TEST(every_acquire) {
    play_all(REDLOCK_OP_ACQUIRE);
}

TEST(every_wait) {
    play_all(REDLOCK_OP_WAIT);
}

TEST(every_extend) {
    play_all(REDLOCK_OP_EXTEND);
}

TEST(every_release) {
    play_all(REDLOCK_OP_RELEASE);
}
