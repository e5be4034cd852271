/* The snapshot of a group over a fake env, and the events of nodes. */
#include "group/tell.h"
#include "told_kit.h"

TOLD_TEST(nodes_are_told_when_they_change, three_told) {
    redlock_group_ready_changed(fake.group, 0, true);
    assert_told(NODE_UP);
    assert_string_equal(last()->node, "node0:6379");
    assert_int_equal(last()->event.node_index, 0);
    assert_int_equal(last()->event.id, 0);
    assert_null(last()->event.trace);
    assert_string_equal(last()->resource, "");
    redlock_group_ready_changed(fake.group, 1, false); /* its first try failed */
    assert_told(NODE_DOWN);
    assert_int_equal(last()->event.node_index, 1);
    redlock_group_ready_changed(fake.group, 1, false);
    assert_nothing_told(); /* that is no news */
    redlock_group_ready_changed(fake.group, 1, true);
    redlock_group_ready_changed(fake.group, 0, false);
    redlock_group_ready_changed(fake.group, 0, false);
    redlock_group_ready_changed(fake.group, 0, true);
    assert_told(NODE_UP, NODE_DOWN, NODE_UP);
    const redlock_telemetry now = snapshot();
    assert_int_equal(now.node_ups[0], 2);
    assert_int_equal(now.node_downs[0], 1);
    assert_int_equal(now.node_ups[1], 1);
    assert_int_equal(now.node_downs[1], 1);
    assert_int_equal(now.node_ups[2] + now.node_downs[2], 0);
}

/* A vote for each cause there is. */
TOLD_TEST(votes_are_counted_by_node_and_cause, three_told) {
    static const struct {
        redlock_vote_kind vote;
        enum redlock_cause cause;
        redlock_voted voted;
    } votes[] = {{REDLOCK_VOTE_GRANTED, REDLOCK_CAUSE_NONE, REDLOCK_VOTED_GRANTED},
                 {REDLOCK_VOTE_DENIED, REDLOCK_CAUSE_NONE, REDLOCK_VOTED_DENIED},
                 {REDLOCK_VOTE_DENIED, REDLOCK_CAUSE_HELD, REDLOCK_VOTED_DENIED},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_NONE, REDLOCK_VOTED_OTHER},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_HELD, REDLOCK_VOTED_OTHER},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_OURS, REDLOCK_VOTED_OURS},
                 {REDLOCK_VOTE_UNKNOWN, REDLOCK_CAUSE_CONNECTION, REDLOCK_VOTED_CONNECTION},
                 {REDLOCK_VOTE_UNKNOWN, REDLOCK_CAUSE_TIMEOUT, REDLOCK_VOTED_TIMEOUT},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_STALLED, REDLOCK_VOTED_STALLED},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_NOT_A_NODE, REDLOCK_VOTED_NOT_A_NODE},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_REPLICA, REDLOCK_VOTED_REPLICA},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_SAME_SERVER, REDLOCK_VOTED_SAME_SERVER},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_TLS, REDLOCK_VOTED_TLS},
                 {REDLOCK_VOTE_UNKNOWN, REDLOCK_CAUSE_QUARANTINE, REDLOCK_VOTED_QUARANTINE},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_AUTH, REDLOCK_VOTED_AUTH},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_DATABASE, REDLOCK_VOTED_SERVER},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_NOPERM, REDLOCK_VOTED_NOPERM},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_NOSCRIPT, REDLOCK_VOTED_NOSCRIPT},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_OOM, REDLOCK_VOTED_OOM},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_MISCONF, REDLOCK_VOTED_MISCONF},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_LOADING, REDLOCK_VOTED_LOADING},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_BUSY, REDLOCK_VOTED_BUSY},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_CLUSTER, REDLOCK_VOTED_CLUSTER},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_SERVER, REDLOCK_VOTED_SERVER},
                 {REDLOCK_VOTE_FAILED, REDLOCK_CAUSE_NO_LUA, REDLOCK_VOTED_SERVER}};
    for (size_t i = 0; i < sizeof votes / sizeof *votes; i++) {
        const struct redlock_text text = {.string = "why", .cause = votes[i].cause};
        fake.log[0] = '\0';
        const redlock_telemetry before = snapshot();
        acquire(NULL, &seen);
        fake_env_answer_as(&fake, 1, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){.vote = votes[i].vote, .text = redlock_text_constant(&text)});
        const redlock_telemetry after = snapshot();
        for (unsigned node = 0; node < 3; node++) {
            for (unsigned voted = 0; voted < REDLOCK_VOTED_MAX; voted++) {
                assert_int_equal(after.votes[voted][node] - before.votes[voted][node],
                                 node == 1 && voted == votes[i].voted);
            }
        }
        fake_env_pass_ms(&fake, 60);
        fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
        fake_env_pass_ms(&fake, 20000); /* what is owed ends */
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    }
    /* A cause that this table does not know. */
    const struct redlock_text strange = {.string = "why", .cause = (enum redlock_cause)1000};
    assert_is(redlock_tell_cause(REDLOCK_VOTE_FAILED, &strange), REDLOCK_VOTED_OTHER);
}

TOLD_TEST(refusals_and_late_votes_are_counted, three_told) {
    fake.refusing = REDLOCK_NODE(2);
    acquire(NULL, &seen);
    assert_int_equal(snapshot().votes[REDLOCK_VOTED_OTHER][2], 1);
    fake_env_answer(&fake, 0, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_FAILED);
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
    fake_env_answer(&fake, 1, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED); /* too late */
    assert_int_equal(snapshot().votes[REDLOCK_VOTED_GRANTED][1], 1);
    assert_int_equal(statistics().votes_late, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    /* An owed release is no vote. */
    assert_int_equal(snapshot().votes[REDLOCK_VOTED_GRANTED][1], 1);
}

TOLD_TEST(an_older_program_gets_what_fits, three_told) {
    redlock_telemetry now;
    memset(&now, 0x55, sizeof now);
    (void)take(NULL, &seen);
    now.size = offsetof(redlock_telemetry, held);
    assert_is(redlock_group_telemetry(fake.group, &now), REDLOCK_OK);
    assert_int_equal(now.size, offsetof(redlock_telemetry, held));
    assert_int_equal(now.acquire.count, 1);
    assert_int_equal(now.held.count, UINT64_C(0x5555555555555555));
    now.size = sizeof now + 100; /* a newer one */
    assert_is(redlock_group_telemetry(fake.group, &now), REDLOCK_OK);
    assert_int_equal(now.size, sizeof now);
    now.size = 0;
    assert_is(redlock_group_telemetry(fake.group, &now), REDLOCK_ERR_INVALID);
    assert_is(redlock_group_telemetry(fake.group, NULL), REDLOCK_ERR_INVALID);
}

TOLD_TEST(every_number_has_a_name, three_told) {
    for (int i = STARTED; i <= NODE_DOWN; i++) {
        for (int j = STARTED; j < i; j++) {
            assert_string_not_equal(redlock_telemetry_kind_name((redlock_telemetry_kind)i),
                                    redlock_telemetry_kind_name((redlock_telemetry_kind)j));
        }
    }
    assert_string_equal(redlock_telemetry_kind_name(NODE_DOWN), "NODE_DOWN");
    assert_string_equal(redlock_telemetry_kind_name((redlock_telemetry_kind)(EXPIRING + 1)), "unknown");
    assert_string_equal(redlock_telemetry_kind_name((redlock_telemetry_kind)-1), "unknown");
    for (int i = 0; i <= REDLOCK_VOTED_TLS; i++) {
        assert_true(strlen(redlock_voted_name((redlock_voted)i)) > 0);
    }
    assert_string_equal(redlock_voted_name(REDLOCK_VOTED_TIMEOUT), "timeout");
    assert_string_equal(redlock_voted_name((redlock_voted)(REDLOCK_VOTED_TLS + 1)), "");
    assert_string_equal(redlock_voted_name((redlock_voted)REDLOCK_VOTED_MAX), "");
    assert_string_equal(redlock_voted_name((redlock_voted)-1), "");
}
