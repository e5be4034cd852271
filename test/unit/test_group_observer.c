/* Observers over a fake env: whom they ask, what they hear, when callbacks run, what is freed. */
#include <stdio.h>
#include <stdlib.h>

#include "group_kit.h"

#define ALICE   "00000000000000aa0123456789abcdef0123456789abcdef"
#define BOB     "00000000000000bb0123456789abcdef0123456789abcdef"
#define CHANNEL "redlock:leader:r"

static int mallocs_left = -1; /* -1: any number */

void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
/* The linker puts these in place of malloc() and realloc(). */
void *__wrap_malloc(size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool has_memory(void) {
    mallocs_left -= mallocs_left > 0;
    return mallocs_left != 0;
}

void *__wrap_malloc(size_t size) {
    return mallocs_left < 0 || has_memory() ? __real_malloc(size) : NULL;
}

void *__wrap_realloc(void *old, size_t size) {
    return mallocs_left < 0 || has_memory() ? __real_realloc(old, size) : NULL;
}

struct watch {
    unsigned count;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1], holder[REDLOCK_HOLDER_SIZE_MAX + 1]; /* the last */
    redlock_observer *observer;
    redlock_observer *ends; /* in the callback */
    bool closes;            /* in the callback */
};

static void on_leader(const redlock_leader *leader, void *data) {
    struct watch *watch = data;
    watch->count++;
    assert_int_equal(leader->size, sizeof *leader);
    assert_false(leader->is_self);
    (void)snprintf(watch->token, sizeof watch->token, "%s", leader->token);
    (void)snprintf(watch->holder, sizeof watch->holder, "%s", leader->holder);
    redlock_observer_end(watch->ends);
    watch->ends = NULL;
    if (watch->closes) {
        static unsigned drained;
        redlock_group_drain(fake.group, count_drained, &drained);
    }
}

static void observe(struct watch *watch) {
    *watch = (struct watch){0};
    assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, watch, &watch->observer), REDLOCK_OK);
    assert_int_equal(watch->count, 0);
}

/* The answer of a node to INSPECT. "" for nobody. */
static void answer(unsigned node, const char *token) {
    const bool held = token[0] != '\0';
    fake_env_answer_as(&fake, node, REDLOCK_OP_INSPECT,
                       (struct redlock_answer){.vote = held ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED,
                                               .holder = token,
                                               .holder_size = strlen(token),
                                               .holder_ttl_ms = held ? 600000 : -2,
                                               .waiters = -1,
                                               .waited_ms = -1});
}

static void answer_all(const char *token) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        answer(i, token);
    }
}

static void announce_on(unsigned node, const char *key, const char *token) {
    const struct redlock_announcement announcement = {
        .key = key, .key_size = strlen(key), .token = token, .token_size = strlen(token), .ttl_ms = 600000};
    redlock_group_announced(fake.group, node, &announcement);
}

static void announce(unsigned first, unsigned last, const char *token) {
    for (unsigned i = first; i <= last; i++) {
        announce_on(i, "r", token);
    }
}

/* The nodes confirm the first channel. */
static void hear(unsigned first, unsigned last) {
    struct redlock_channel *channel = fake.channels->first;
    for (unsigned i = first; i <= last; i++) {
        channel->heard |= REDLOCK_NODE(i);
        redlock_group_hears(fake.group, i, channel);
    }
}

static unsigned count_asked(void) {
    return fake_env_waiting_count(&fake, REDLOCK_OP_INSPECT);
}

/* An observer that all nodes tell: nobody leads. */
static void observe_all(struct watch *watch) {
    observe(watch);
    hear(0, 2);
    answer_all("");
    answer_all("");
    assert_int_equal(watch->count, 1);
    assert_string_equal(watch->token, "");
    assert_int_equal(count_asked(), 0);
}

static void an_observer_asks_and_subscribes(void **state) {
    struct watch watch;
    (void)state;
    observe(&watch);
    assert_int_equal(count_asked(), 3);
    assert_string_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_INSPECT)->key, "r");
    assert_string_equal(fake.channels->first->name, CHANNEL);
    assert_null(fake.channels->first->next);
    answer(0, ALICE);
    assert_int_equal(watch.count, 0);
    answer(2, ALICE);
    assert_int_equal(watch.count, 1);
    assert_string_equal(watch.token, ALICE);
    answer(1, ALICE);
    assert_int_equal(watch.count, 1);
    redlock_observer_end(watch.observer);
    assert_int_equal(fake.left, 1);
    assert_null(fake.channels->first);
}

static void the_key_prefix_is_part_of_the_channel(void **state) {
    struct watch watch;
    (void)state;
    observe(&watch);
    assert_string_equal(fake.channels->first->name, "redlock:leader:locks:r");
    assert_int_equal(count_asked(), 5);
    fake.channels->first->heard = 31;
    announce(0, 4, ALICE); /* of another group's "r" */
    assert_int_equal(watch.count, 0);
    for (unsigned i = 0; i < 3; i++) {
        announce_on(i, "locks:r", ALICE);
    }
    assert_int_equal(watch.count, 1);
}

static void what_nodes_announce_is_told(void **state) {
    struct watch watch;
    (void)state;
    observe_all(&watch);
    announce(0, 1, ALICE);
    assert_int_equal(watch.count, 2);
    assert_string_equal(watch.token, ALICE);
    announce(2, 2, ALICE);
    assert_int_equal(watch.count, 2);
    announce(0, 2, BOB);
    assert_int_equal(watch.count, 3);
    announce(0, 2, "");
    assert_int_equal(watch.count, 4);
    assert_string_equal(watch.token, "");
    assert_int_equal(count_asked(), 0);
    /* of others */
    announce_on(0, "s", ALICE);
    announce_on(1, "rr", ALICE);
    announce_on(2, "", ALICE);
    assert_int_equal(watch.count, 4);
}

static void the_leader_says_who_it_is(void **state) {
    struct watch watch;
    (void)state;
    observe_all(&watch);
    assert_string_equal(watch.holder, "");
    announce(0, 1, ALICE "@web-3:4711");
    assert_string_equal(watch.token, ALICE "@web-3:4711");
    assert_string_equal(watch.holder, "web-3:4711");
    announce(0, 1, BOB);
    assert_string_equal(watch.token, BOB);
    assert_string_equal(watch.holder, "");
}

/* A key may hold any value. The lock is not free then, and nobody can be named. */
static void a_key_without_a_name_is_no_news(void **state) {
    static const struct {
        const char *bytes;
        size_t size;
    } values[] = {{"", 0}, {"\0lice", 5}};
    (void)state;
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        struct watch watch;
        observe(&watch);
        for (unsigned i = 0; i < 3; i++) {
            const struct redlock_announcement announcement = {
                .key = "r", .key_size = 1, .token = "\0lice", .token_size = 5, .ttl_ms = 600000};
            fake_env_answer_as(&fake, i, REDLOCK_OP_INSPECT,
                               (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED,
                                                       .holder = values[v].bytes,
                                                       .holder_size = values[v].size,
                                                       .holder_ttl_ms = 600000,
                                                       .waiters = -1,
                                                       .waited_ms = -1});
            hear(i, i);
            redlock_group_announced(fake.group, i, &announcement);
        }
        fake_env_turn(&fake);
        assert_int_equal(watch.count, 0);
        answer_all(ALICE);
        assert_int_equal(watch.count, 1);
        assert_string_equal(watch.token, ALICE);
        redlock_observer_end(watch.observer);
    }
}

/* Such a message is left from an earlier subscription. */
static void who_is_not_heard_announces_nothing(void **state) {
    struct watch watch;
    (void)state;
    observe(&watch);
    announce(0, 2, ALICE);
    assert_int_equal(watch.count, 0);
    hear(0, 0);
    announce(0, 2, ALICE);
    assert_int_equal(watch.count, 0);
    hear(1, 1);
    announce(0, 2, ALICE);
    assert_int_equal(watch.count, 1);
}

static void a_node_is_asked_once_it_is_heard(void **state) {
    struct watch watch;
    (void)state;
    observe(&watch);
    answer_all("");
    assert_int_equal(count_asked(), 0);
    hear(1, 1);
    assert_int_equal(count_asked(), 1);
    assert_non_null(fake_env_waiting(&fake, 1, REDLOCK_OP_INSPECT));
    answer(1, ALICE);
    /* refused: it is asked from time to time */
    fake.channels->first->refused |= 4;
    redlock_group_hears(fake.group, 2, fake.channels->first);
    assert_int_equal(count_asked(), 0);
    fake_env_pass_ms(&fake, 2500);
    assert_int_equal(count_asked(), 2);
    answer(0, "");
    answer(2, "");
    /* Its subscription ends. */
    fake.channels->first->heard = 0;
    redlock_group_listens(fake.group, 1, REDLOCK_LISTENING_NOT, NULL);
    fake_env_pass_ms(&fake, 2500);
    assert_int_equal(count_asked(), 3);
    /* A confirmed subscription to the manager's own channel says nothing of this one. */
    answer_all("");
    redlock_group_listens(fake.group, 1, REDLOCK_LISTENING, NULL);
    assert_int_equal(count_asked(), 0);
}

static void a_node_that_lost_the_script_gets_its_source(void **state) {
    struct watch watch;
    (void)state;
    observe(&watch);
    fake_env_answer_no_script(&fake, 1, REDLOCK_OP_INSPECT);
    assert_true(fake_env_waiting(&fake, 1, REDLOCK_OP_INSPECT)->by_source);
    fake_env_answer_no_script(&fake, 1, REDLOCK_OP_INSPECT); /* not a second time */
    assert_null(fake_env_waiting(&fake, 1, REDLOCK_OP_INSPECT));
    fake.refusing = 4;
    fake_env_answer_no_script(&fake, 2, REDLOCK_OP_INSPECT);
    assert_null(fake_env_waiting(&fake, 2, REDLOCK_OP_INSPECT));
    fake.refusing = 0;
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(count_asked(), 3);
    answer(1, ALICE);
    answer(2, ALICE);
    assert_string_equal(watch.token, ALICE);
}

static void nodes_that_refuse_or_fail_are_asked_again(void **state) {
    struct watch watch;
    (void)state;
    fake.refusing = 7;
    observe(&watch);
    assert_int_equal(count_asked(), 0);
    fake.refusing = 5;
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(count_asked(), 1);
    fake_env_answer(&fake, 1, REDLOCK_OP_INSPECT, REDLOCK_VOTE_FAILED);
    fake.refusing = 1;
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(count_asked(), 2);
    fake_env_answer(&fake, 1, REDLOCK_OP_INSPECT, REDLOCK_VOTE_UNKNOWN);
    fake_env_answer(&fake, 2, REDLOCK_OP_INSPECT, REDLOCK_VOTE_FAILED);
    fake_env_pass_ms(&fake, 1000);
    answer(1, BOB);
    answer(2, BOB);
    assert_string_equal(watch.token, BOB);
}

static void observers_of_a_resource_share_its_channel(void **state) {
    struct watch first, second, gate;
    (void)state;
    observe_all(&first);
    observe(&second);
    assert_null(fake.channels->first->next);
    assert_int_equal(count_asked(), 3);
    answer_all("");
    assert_int_equal(count_asked(), 0); /* what was announced since the question would have come */
    assert_int_equal(second.count, 1);
    gate = (struct watch){0};
    assert_int_equal(redlock_group_observe(fake.group, "gate", on_leader, &gate, &gate.observer), REDLOCK_OK);
    assert_non_null(fake.channels->first->next);
    hear(0, 0);
    announce(0, 2, ALICE);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 2);
    assert_int_equal(gate.count, 0);
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

/* Answers that are to come find it. */
static void who_ended_is_told_nothing(void **state) {
    struct watch watch;
    (void)state;
    observe(&watch);
    redlock_observer_end(watch.observer);
    redlock_observer_end(NULL);
    redlock_group_listens(fake.group, 1, REDLOCK_LISTENING_NOT, NULL);
    answer_all(ALICE);
    assert_int_equal(watch.count, 0);
    observe(&watch);
    redlock_observer_end(watch.observer);
    announce(0, 2, ALICE);
    struct watch other;
    observe(&other);
    hear(0, 2);
    announce(0, 2, ALICE);
    assert_int_equal(watch.count, 0);
    assert_int_equal(other.count, 1);
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_INSPECT); /* of the one that ended */
}

static void a_callback_may_end_observers(void **state) {
    struct watch first, second;
    (void)state;
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

/* What changes back before the callback runs is no news. */
static void change_inside(const redlock_result *result, void *data) {
    (void)result;
    (void)data;
    announce(0, 2, ALICE);
    announce(0, 2, BOB);
}

static void change_and_back_inside(const redlock_result *result, void *data) {
    (void)result;
    (void)data;
    announce(0, 2, ALICE);
    announce(0, 2, "");
}

static void changes_that_follow_fast_are_told_as_one(void **state) {
    struct watch watch;
    (void)state;
    observe_all(&watch);
    assert_int_equal(redlock_group_inspect(fake.group, "s", change_and_back_inside, NULL), REDLOCK_OK);
    answer_all("");
    fake_env_turn(&fake);
    assert_int_equal(watch.count, 1);
    assert_int_equal(redlock_group_inspect(fake.group, "s", change_inside, NULL), REDLOCK_OK);
    answer_all("");
    fake_env_turn(&fake);
    assert_int_equal(watch.count, 2);
    assert_string_equal(watch.token, BOB);
}

static void wrong_arguments_are_refused(void **state) {
    struct watch watch = {0};
    char longest[REDLOCK_RESOURCE_SIZE_MAX + 2];
    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    redlock_observer **observer = &watch.observer;
    assert_int_equal(redlock_group_observe(fake.group, "r", NULL, NULL, observer), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, &watch, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_group_observe(fake.group, "", on_leader, &watch, observer), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_group_observe(fake.group, NULL, on_leader, &watch, observer), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_group_observe(fake.group, longest, on_leader, &watch, observer), REDLOCK_ERR_INVALID);
    fake.random_code = REDLOCK_ERR_RANDOM;
    assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, &watch, observer), REDLOCK_ERR_RANDOM);
    fake.random_code = REDLOCK_ERR_FORKED;
    assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, &watch, observer), REDLOCK_ERR_FORKED);
    assert_null(watch.observer);
    fake.random_code = REDLOCK_OK;
    observe(&watch);
    fake.random_code = REDLOCK_ERR_FORKED;
    redlock_observer_end(watch.observer); /* in a child: nothing is sent */
    assert_int_equal(fake.left, 0);
}

static void there_is_a_most(void **state) {
    redlock_observer *observers[1024], *more = NULL;
    (void)state;
    fake.refusing = 7;
    for (int i = 0; i < 1024; i++) {
        assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, NULL, &observers[i]), REDLOCK_OK);
    }
    assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, NULL, &more), REDLOCK_ERR_LIMIT);
    assert_null(more);
    redlock_observer_end(observers[500]);
    assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, NULL, &more), REDLOCK_OK);
}

static int observe_with(int mallocs, struct watch *watch) {
    mallocs_left = mallocs;
    const int code = redlock_group_observe(fake.group, "r", on_leader, watch, &watch->observer);
    mallocs_left = -1;
    return code;
}

static void without_memory_there_is_none(void **state) {
    struct watch watch = {0};
    (void)state;
    assert_int_equal(observe_with(1, &watch), REDLOCK_ERR_NO_MEMORY); /* for the schedule */
    observe(&watch);                                                  /* then it has room */
    redlock_observer_end(watch.observer);
    answer_all("");
    watch.observer = NULL;
    const unsigned sent = fake.sent_count;
    for (int mallocs = 1; mallocs <= 2; mallocs++) { /* the observer, its channel */
        assert_int_equal(observe_with(mallocs, &watch), REDLOCK_ERR_NO_MEMORY);
        assert_null(watch.observer);
        assert_null(fake.channels->first);
        assert_int_equal(fake.sent_count, sent);
    }
    assert_int_equal(observe_with(3, &watch), REDLOCK_OK);
    assert_int_equal(fake.sent_count, sent + 3);
    answer_all(ALICE);
    assert_int_equal(watch.count, 1);
}

static void closing_ends_observers(void **state) {
    struct watch first, second, third;
    unsigned drained = 0;
    (void)state;
    observe_all(&first);
    observe(&second); /* answers are to come */
    observe(&third);
    redlock_observer_end(third.observer);
    redlock_group_drain(fake.group, count_drained, &drained);
    assert_int_equal(redlock_group_observe(fake.group, "r", on_leader, &third, &third.observer), REDLOCK_ERR_CLOSED);
    assert_int_equal(fake.left, 1);
    fake_env_turn(&fake);
    assert_int_equal(drained, 0);
    answer_all(ALICE);
    answer_all(ALICE);
    fake_env_turn(&fake);
    assert_int_equal(drained, 1);
    assert_int_equal(first.count + second.count, 1);
}

static void a_callback_may_close(void **state) {
    struct watch watch;
    (void)state;
    observe_all(&watch);
    watch.closes = true;
    announce(0, 2, ALICE);
    assert_int_equal(watch.count, 2);
    assert_int_equal(fake.left, 1);
}

#define TEST(function) group_test(function, three_nodes)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_observer_asks_and_subscribes),
        group_test(the_key_prefix_is_part_of_the_channel, five_nodes),
        TEST(what_nodes_announce_is_told),
        TEST(the_leader_says_who_it_is),
        TEST(a_key_without_a_name_is_no_news),
        TEST(who_is_not_heard_announces_nothing),
        TEST(a_node_is_asked_once_it_is_heard),
        TEST(a_node_that_lost_the_script_gets_its_source),
        TEST(nodes_that_refuse_or_fail_are_asked_again),
        TEST(observers_of_a_resource_share_its_channel),
        TEST(who_ended_is_told_nothing),
        TEST(a_callback_may_end_observers),
        TEST(changes_that_follow_fast_are_told_as_one),
        TEST(wrong_arguments_are_refused),
        TEST(there_is_a_most),
        TEST(without_memory_there_is_none),
        TEST(closing_ends_observers),
        TEST(a_callback_may_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
