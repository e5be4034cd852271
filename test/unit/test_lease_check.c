/* The relations between a lease's fields: each one that is broken is told. */
#include "life.h"

static struct redlock_lease_core held(void) {
    struct life life;
    life_held(&life, false);
    return life.core;
}

TEST(each_broken_relation_is_told) {
    static const struct {
        const char *relation;
        size_t offset;
        redlock_nodes set;
    } table[] = {
        {"votes are of nodes that were asked", offsetof(struct redlock_lease_core, votes.asked), 0},
        {"a node has one vote", offsetof(struct redlock_lease_core, votes.denied), 1},
        {"granted_count counts the granted", offsetof(struct redlock_lease_core, votes.granted), 3},
        {"nodes are those of the group", offsetof(struct redlock_lease_core, keys.may_have), 1U << 30 | 31},
        {"heal_unanswered is in unanswered", offsetof(struct redlock_lease_core, keys.heal_unanswered), 1U << 30},
        {"asked_earlier is in to_release", offsetof(struct redlock_lease_core, keys.asked_earlier), 1U << 30},
        {"set_outside is in to_release", offsetof(struct redlock_lease_core, keys.set_outside), 1U << 30},
        {"backing may have the key", offsetof(struct redlock_lease_core, keys.backing), 1U << 30},
        {"backing is in to_release", offsetof(struct redlock_lease_core, keys.to_release), 1},
        {"a quorum may have the key of what is held", offsetof(struct redlock_lease_core, keys.may_have), 3},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct redlock_lease_core lease = held();
        assert_null(redlock_lease_check(&lease, true));
        *(redlock_nodes *)(void *)((char *)&lease + table[i].offset) = table[i].set;
        assert_string_equal(redlock_lease_check(&lease, true), table[i].relation);
    }
}

TEST(each_state_has_only_its_fields) {
    struct redlock_lease_core lease = held();
    lease.state = REDLOCK_LEASE_EXTENDING;
    assert_string_equal(redlock_lease_check(&lease, true), "the round is that of the state");
    lease = held();
    lease.was_held = false;
    assert_string_equal(redlock_lease_check(&lease, true), "HELD was held");
    lease = held();
    lease.extend_by_caller = true;
    assert_string_equal(redlock_lease_check(&lease, true), "only EXTENDING answers the caller");
    lease = held();
    lease.state = REDLOCK_LEASE_QUEUED;
    lease.operation = REDLOCK_OP_WAIT;
    assert_string_equal(redlock_lease_check(&lease, true), "QUEUED has a queue");
    lease = held();
    lease.state = REDLOCK_LEASE_RETRYING;
    assert_string_equal(redlock_lease_check(&lease, true), "who gave up has cleaned up");
    lease.keys.to_release = 0;
    assert_null(redlock_lease_check(&lease, true));
}

TEST(each_fact_has_its_reason) {
    struct redlock_lease_core lease = held();
    lease.votes.quorum = 0;
    assert_string_equal(redlock_lease_check(&lease, false), "a quorum is some of the nodes");
    lease = held();
    lease.state = REDLOCK_LEASE_LOST;
    lease.keys.to_release = 0;
    assert_null(redlock_lease_check(&lease, false));
    lease.was_held = false;
    assert_string_equal(redlock_lease_check(&lease, false), "EXTENDING and LOST were held or adopted");
    lease.state = REDLOCK_LEASE_ADOPTED;
    assert_string_equal(redlock_lease_check(&lease, false), "ADOPTED was never held");
    lease = held();
    lease.heal_ns = T0;
    assert_string_equal(redlock_lease_check(&lease, false), "only who heals has a time for it");
    lease = held();
    lease.fence_written = true;
    assert_string_equal(redlock_lease_check(&lease, false), "only a fencing token is written");
    lease = held();
    lease.state = REDLOCK_LEASE_RELEASING;
    lease.operation = REDLOCK_OP_RELEASE;
    lease.was_held = false;
    lease.expiring_told = true;
    assert_string_equal(redlock_lease_check(&lease, false), "what was told to expire was held");
}
