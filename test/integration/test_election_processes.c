/* Elections by separate processes: leaders that are killed, stopped, resign or lose their nodes,
 * and who is told of it. */
#include "crowd.h"

#define TTL_MS 2000 /* long enough for a loaded machine to renew in */
/* What the next leader needs beyond the ttl, and after a resignation: a round trip and the ends of
 * keys. */
#define HANDOVER_MS 20
#define ROUNDS      5

static const char queue[] = CROWD_RESOURCE ":wait";

static struct member *start(enum crowd_kind kind) {
    return crowd_start(&crowd_servers, &(struct crowd_options){.kind = kind, .ttl_ms = TTL_MS, .node_timeout_ms = 500});
}

static bool in_line(int count) {
    return crowd_is_long(&crowd_servers, queue, count, 3);
}

/* A leader and `count` - 1 others in line, in this order. */
static void line_up(struct member **members, int count) {
    for (int i = 0; i < count; i++) {
        members[i] = start(CROWD_ELECTS);
        if (i == 0) {
            crowd_until(crowd_holds(members[0]));
        } else {
            crowd_until(in_line(i));
        }
    }
}

static bool has_led(const struct member *member, int times) {
    return atomic_load(&member->led) == times;
}

/* The member has heard that this one leads. */
static bool has_heard(const struct member *member, const struct member *leader) {
    return atomic_load(&member->heard) > 0 && strcmp(member->heard_token, leader->token) == 0;
}

static int compare(const void *a, const void *b) {
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* One process that is not scheduled for a moment says nothing of the library. */
static int64_t median_ms(int64_t *ns) {
    qsort(ns, ROUNDS, sizeof *ns, compare);
    return ns[ROUNDS / 2] / 1000000;
}

TESTS_WITH(crowd_five, crowd_end);

/* The first in line leads when the keys have ended; the killed one comes back at the end. */
CROWD_TEST(the_leader_is_killed) {
    struct member *members[ROUNDS + 2];
    int64_t took_ns[ROUNDS];
    line_up(members, 2);
    for (int i = 0; i < ROUNDS; i++) {
        members[i + 2] = start(CROWD_ELECTS);
        crowd_until(in_line(2));
        const int64_t from_ns = support_now_ns();
        crowd_kill(members[i]);
        crowd_until(has_led(members[i + 1], 1));
        took_ns[i] = atomic_load(&members[i + 1]->led_at_ns) - from_ns;
        assert_int_equal(atomic_load(&members[i + 2]->led), 0);
    }
    assert_in_range(median_ms(took_ns), 0, TTL_MS + HANDOVER_MS);
    crowd_finish();
}

/* It believes to lead until its deadline, but its loop does not run. Then it is told, and stands in
 * line again. */
CROWD_TEST(the_leader_is_stopped) {
    struct member *members[3];
    line_up(members, 3);
    crowd_stop(members[0]);
    crowd_until(has_led(members[1], 1));
    assert_false(crowd_holds(members[0]));
    crowd_continue(members[0]);
    crowd_until(atomic_load(&members[0]->lost) == 1);
    crowd_until(in_line(2));
    crowd_until(has_heard(members[0], members[1]));
    assert_int_equal(atomic_load(&members[1]->lost), 0);
    crowd_kill(members[1]);
    crowd_until(has_led(members[2], 1));
    crowd_kill(members[2]);
    crowd_until(has_led(members[0], 2));
    crowd_finish();
}

/* The next in line leads at once. The one that resigned stays out until it is told to campaign. */
CROWD_TEST(the_leader_resigns) {
    struct member *members[3];
    int64_t took_ns[ROUNDS];
    line_up(members, 3);
    for (int i = 0; i < ROUNDS; i++) {
        struct member *leader = members[i % 3], *next = members[(i + 1) % 3];
        const int led = atomic_load(&next->led), resigned = atomic_load(&leader->resigned);
        const int64_t from_ns = support_now_ns();
        atomic_store(&leader->resigns, true);
        crowd_until(has_led(next, led + 1) && atomic_load(&leader->resigned) == resigned + 1);
        took_ns[i] = atomic_load(&next->led_at_ns) - from_ns;
        crowd_until(in_line(1));
        atomic_store(&leader->campaigns, true);
        crowd_until(in_line(2));
        assert_int_equal(atomic_load(&leader->lost), 0);
    }
    assert_true(median_ms(took_ns) <= HANDOVER_MS);
    crowd_finish();
}

/* Everybody is told of the trouble once; when the nodes are back, there is one leader again. */
CROWD_TEST(no_quorum_and_back) {
    struct member *members[3];
    line_up(members, 3);
    servers_each(&crowd_servers, 0, 3, server_kill);
    crowd_until(atomic_load(&members[0]->lost) == 1);
    for (int i = 0; i < 3; i++) {
        crowd_until(atomic_load(&members[i]->troubles) == 1);
        assert_false(crowd_holds(members[i]));
    }
    servers_each(&crowd_servers, 0, 3, server_restart);
    crowd_until(crowd_holds(members[0]) || crowd_holds(members[1]) || crowd_holds(members[2]));
    struct member *leader = crowd_holds(members[0]) ? members[0] : crowd_holds(members[1]) ? members[1] : members[2];
    for (int i = 0; i < 3; i++) {
        crowd_until(has_heard(members[i], leader));
        crowd_until(members[i] == leader || atomic_load(&members[i]->calmed) == 1);
        assert_int_equal(atomic_load(&members[i]->troubles), 1);
    }
    crowd_finish();
}

/* Each candidate and an observer hear of each leader, one message after it leads. */
CROWD_TEST(changes_are_heard) {
    struct member *members[2], *observer;
    int64_t took_ns[ROUNDS];
    line_up(members, 2);
    observer = start(CROWD_OBSERVES);
    crowd_until(has_heard(observer, members[0]) && has_heard(members[1], members[0]) &&
                has_heard(members[0], members[0]));
    assert_true(members[0]->heard_itself && !members[1]->heard_itself && !observer->heard_itself);
    for (int i = 0; i < ROUNDS; i++) {
        struct member *leader = members[i % 2], *next = members[(i + 1) % 2];
        const int led = atomic_load(&next->led);
        atomic_store(&leader->resigns, true);
        crowd_until(has_led(next, led + 1));
        crowd_until(has_heard(observer, next) && has_heard(leader, next) && has_heard(next, next));
        took_ns[i] = atomic_load(&observer->heard_at_ns) - atomic_load(&next->led_at_ns);
        atomic_store(&leader->campaigns, true);
        crowd_until(in_line(1));
    }
    assert_true(median_ms(took_ns) <= HANDOVER_MS);
    atomic_store(&members[0]->resigns, true);
    atomic_store(&members[1]->resigns, true);
    crowd_until(observer->heard_token[0] == '\0');
    assert_int_equal(atomic_load(&observer->led), 0);
    crowd_finish();
}
