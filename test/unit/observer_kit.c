/* What the tests of observers begin with. */
#include "observer_kit.h"

void on_leader(const redlock_leader *leader, void *data) {
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

void observe(struct watch *watch) {
    *watch = (struct watch){0};
    assert_is(redlock_group_observe(fake.group, "r", on_leader, watch, &watch->observer), REDLOCK_OK);
    assert_int_equal(watch->count, 0);
}

void answer(unsigned node, const char *token) {
    const bool held = token[0] != '\0';
    fake_env_answer_as(&fake, node, REDLOCK_OP_INSPECT,
                       (struct redlock_answer){.vote = held ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED,
                                               .holder = token,
                                               .holder_size = strlen(token),
                                               .holder_ttl_ms = held ? 600000 : -2,
                                               .waiters = -1,
                                               .waited_ms = -1});
}

void answer_all(const char *token) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        answer(i, token);
    }
}

void hint_on(unsigned node, const char *key) {
    redlock_group_hinted(fake.group, node, &(struct redlock_hint){.key = key, .key_size = strlen(key)});
}

static bool is_asked(unsigned node) {
    const struct fake_sent *sent = fake_env_waiting(&fake, node, REDLOCK_OP_INSPECT);
    return sent != NULL && strcmp(sent->key, "r") == 0;
}

void announce(unsigned first, unsigned last, const char *token) {
    for (unsigned i = first; i <= last; i++) {
        hint_on(i, "r");
        while (is_asked(i)) {
            answer(i, token);
        }
    }
}

void hear(unsigned first, unsigned last) {
    struct redlock_channel *channel = fake.channels->first;
    for (unsigned i = first; i <= last; i++) {
        channel->heard |= REDLOCK_NODE(i);
        redlock_group_hears(fake.group, i, channel);
    }
}

unsigned count_asked(void) {
    return fake_env_waiting_count(&fake, REDLOCK_OP_INSPECT);
}

void observe_all(struct watch *watch) {
    observe(watch);
    hear(0, 2);
    answer_all("");
    answer_all("");
    assert_int_equal(watch->count, 1);
    assert_string_equal(watch->token, "");
    assert_int_equal(count_asked(), 0);
}
