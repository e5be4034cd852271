/* Observers over a fake env: several of one resource, how they end, what is refused and freed. */
#include "observer_kit.h"
#include "scarce_memory.h"

GROUP_TEST(observers_of_a_resource_share_its_channel, three_nodes) {
    struct watch first, second, gate;
    observe_all(&first);
    observe(&second);
    assert_null(fake.channels->first->next);
    assert_int_equal(count_asked(), 3);
    answer_all("");
    assert_int_equal(count_asked(), 0); /* what was announced since the question would have come */
    assert_int_equal(second.count, 1);
    gate = (struct watch){0};
    assert_is(redlock_group_observe(fake.group, "gate", on_leader, &gate, &gate.observer), REDLOCK_OK);
    assert_non_null(fake.channels->first->next);
    answer_all("");
    announce(0, 2, ALICE);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 2);
    assert_int_equal(gate.count, 1);
    redlock_observer_end(first.observer);
    assert_int_equal(fake.left, 0);
    announce(0, 2, BOB);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 3);
    redlock_observer_end(second.observer);
    assert_int_equal(fake.left, 1);
    assert_null(fake.channels->first->next);
    announce(0, 2, ALICE);
    assert_int_equal(second.count, 3);
}

GROUP_TEST(who_ended_wakes_nobody, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    assert_true(fake.wake_ns > fake.now_ns && fake.wake_ns < REDLOCK_NEVER_NS);
    redlock_observer_end(watch.observer);
    assert_int_equal(fake.wake_ns, REDLOCK_NEVER_NS);
}

/* Answers that are to come find it. */
GROUP_TEST(who_ended_is_told_nothing, three_nodes) {
    struct watch watch;
    observe(&watch);
    redlock_observer_end(watch.observer);
    redlock_observer_end(NULL);
    redlock_group_listens(fake.group, 1, REDLOCK_LISTENING_NOT, NULL);
    answer_all(ALICE);
    assert_int_equal(watch.count, 0);
    observe(&watch);
    redlock_observer_end(watch.observer);
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_INSPECT);
    announce(0, 2, ALICE);
    struct watch other;
    observe(&other);
    hear(0, 2);
    announce(0, 2, ALICE);
    assert_int_equal(watch.count, 0);
    assert_int_equal(other.count, 1);
}

GROUP_TEST(a_callback_may_end_observers, three_nodes) {
    struct watch first, second;
    observe_all(&first);
    observe(&second);
    answer_all("");
    first.ends = first.observer;
    announce(0, 1, ALICE);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 2);
    second.ends = second.observer;
    announce(0, 1, BOB);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 3);
    assert_int_equal(fake.left, 1);
    /* The callback of the other one waits already. */
    observe_all(&first);
    observe(&second);
    answer_all("");
    first.ends = second.observer;
    announce(0, 1, ALICE);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 1);
}

GROUP_TEST(without_random_bytes_or_in_a_child_there_is_none, three_nodes) {
    struct watch watch = {0};
    redlock_observer **observer = &watch.observer;
    fake.random_code = REDLOCK_ERR_RANDOM;
    assert_is(redlock_group_observe(fake.group, "r", on_leader, &watch, observer), REDLOCK_ERR_RANDOM);
    fake.random_code = REDLOCK_ERR_FORKED;
    assert_is(redlock_group_observe(fake.group, "r", on_leader, &watch, observer), REDLOCK_ERR_FORKED);
    assert_null(watch.observer);
    fake.random_code = REDLOCK_OK;
    observe(&watch);
    fake.random_code = REDLOCK_ERR_FORKED;
    redlock_observer_end(watch.observer); /* in a child: nothing is sent */
    assert_int_equal(fake.left, 0);
}

GROUP_TEST(there_is_a_most, three_nodes) {
    redlock_observer *observers[1024], *more = NULL;
    fake.refusing = 7;
    for (int i = 0; i < 1024; i++) {
        assert_is(redlock_group_observe(fake.group, "r", on_leader, NULL, &observers[i]), REDLOCK_OK);
    }
    assert_is(redlock_group_observe(fake.group, "r", on_leader, NULL, &more), REDLOCK_ERR_LIMIT);
    assert_null(more);
    redlock_observer_end(observers[500]);
    assert_is(redlock_group_observe(fake.group, "r", on_leader, NULL, &more), REDLOCK_OK);
}

static int observe_with(int mallocs, struct watch *watch) {
    memory_fails_at(mallocs);
    const int code = redlock_group_observe(fake.group, "r", on_leader, watch, &watch->observer);
    memory.armed = false;
    return code;
}

GROUP_TEST(without_memory_there_is_none, three_nodes) {
    struct watch watch = {0};
    assert_is(observe_with(1, &watch), REDLOCK_ERR_NO_MEMORY); /* for the schedule */
    observe(&watch);                                           /* then it has room */
    redlock_observer_end(watch.observer);
    answer_all("");
    watch.observer = NULL;
    const unsigned sent = fake.sent_count;
    for (int mallocs = 1; mallocs <= 2; mallocs++) { /* the observer, its channel */
        assert_is(observe_with(mallocs, &watch), REDLOCK_ERR_NO_MEMORY);
        assert_null(watch.observer);
        assert_null(fake.channels->first);
        assert_int_equal(fake.sent_count, sent);
    }
    assert_is(observe_with(3, &watch), REDLOCK_OK);
    assert_int_equal(fake.sent_count, sent + 3);
    answer_all(ALICE);
    assert_int_equal(watch.count, 1);
}

GROUP_TEST(closing_ends_observers, three_nodes) {
    struct watch first, second, third;
    unsigned drained = 0;
    observe_all(&first);
    observe(&second); /* answers are to come */
    observe(&third);
    redlock_observer_end(third.observer);
    redlock_group_drain(fake.group, count_drained, &drained);
    assert_is(redlock_group_observe(fake.group, "r", on_leader, &third, &third.observer), REDLOCK_ERR_CLOSED);
    assert_int_equal(fake.left, 1);
    fake_env_turn(&fake);
    assert_int_equal(drained, 0);
    answer_all(ALICE);
    answer_all(ALICE);
    fake_env_turn(&fake);
    assert_int_equal(drained, 1);
    assert_int_equal(first.count + second.count, 1);
}

GROUP_TEST(a_callback_may_close, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    watch.closes = true;
    announce(0, 2, ALICE);
    assert_int_equal(watch.count, 2);
    assert_int_equal(fake.left, 1);
}
