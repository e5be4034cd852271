/* The env of the unit tests of the group. */
#include "fake_env.h"

#include "core/time.h"
#include "test.h"

static const char *const names[REDLOCK_NODES_MAX] = {"node0:6379", "node1:6379", "node2:6379", "node3:6379",
                                                     "node4:6379", "node5:6379", "node6:6379"};

static int64_t now_ns(void *ctx) {
    const struct fake_env *fake = ctx;
    return fake->now_ns;
}

static int64_t wall_us(void *ctx) {
    const struct fake_env *fake = ctx;
    return fake->wall_us;
}

static int random_bytes(void *ctx, void *buffer, size_t size) {
    struct fake_env *fake = ctx;
    if (fake->random_code != REDLOCK_OK) {
        return fake->random_code;
    }
    for (size_t i = 0; i < size; i++) {
        fake->random_state = fake->random_state * 6364136223846793005u + 1442695040888963407u;
        ((unsigned char *)buffer)[i] = (unsigned char)(fake->random_state >> 56);
    }
    return REDLOCK_OK;
}

static void wake_at(void *ctx, int64_t when_ns) {
    struct fake_env *fake = ctx;
    fake->wake_ns = when_ns;
}

static void listen_to(void *ctx, const char *channel) {
    struct fake_env *fake = ctx;
    assert_null(fake->channel);
    fake->channel = channel;
}

static void hear(void *ctx, const struct redlock_channels *channels) {
    struct fake_env *fake = ctx;
    assert_non_null(fake->channel);
    assert_non_null(channels->first);
    fake->channels = channels;
}

static void stop_hearing(void *ctx, const struct redlock_channel *channel) {
    struct fake_env *fake = ctx;
    for (const struct redlock_channel *other = fake->channels->first; other != NULL; other = other->next) {
        assert_ptr_not_equal(other, channel);
    }
    fake->left++;
}

static void note_slots(const struct redlock_message *message, struct fake_sent *sent) {
    const struct redlock_slots *slots = redlock_target_slots(message->target);
    assert_true(message->target->has_slots && slots->permits <= FAKE_SLOTS_MAX);
    sent->slots = (struct fake_slots){.permits = slots->permits,
                                      .limit = slots->limit,
                                      .first = slots->first,
                                      .window = slots->window,
                                      .taken = slots->taken,
                                      .others = slots->others};
    memcpy(sent->slots.numbers, slots->numbers, slots->permits * sizeof *slots->numbers);
    if (message->operation == REDLOCK_OP_ACQUIRE && message->gate) {
        sent->gate = *message->gate;
        memcpy(sent->gate_token, sent->gate.token, sent->gate.token_size);
    }
}

static redlock_nodes send_message(void *ctx, redlock_nodes nodes, struct redlock_message *message) {
    struct fake_env *fake = ctx;
    const redlock_nodes taken = nodes & ~fake->refusing;
    for (unsigned i = 0; i < fake->node_count; i++) {
        if (!(taken & REDLOCK_NODE(i))) {
            continue;
        }
        assert_true(fake->sent_count < FAKE_SENT_MAX);
        struct fake_sent *sent = &fake->sent[fake->sent_count++];
        *sent = (struct fake_sent){.node = i,
                                   .operation = message->operation,
                                   .by_source = message->by_source,
                                   .no_timeout = message->no_timeout,
                                   .owner = message->requester,
                                   .round = message->round,
                                   .ttl_ms = message->ttl_ms,
                                   .fence = message->fence,
                                   .timed = message->timed,
                                   .handing = message->handing,
                                   .by_try = message->by_try,
                                   .shared = message->shared,
                                   .announced = message->target != NULL && message->target->announced};
        if (message->operation == REDLOCK_OP_WAIT) {
            assert_string_equal(message->place->channel, fake->channel);
            sent->place = *message->place;
            sent->place.seals = NULL; /* the caller's */
            sent->seal = message->place->seals[i];
        }
        if (message->operation == REDLOCK_OP_LIST) {
            assert_true(strlen(message->page->pattern) < sizeof sent->pattern);
            sent->cursor = message->page->cursor;
            sent->keys = message->page->count;
            strcpy(sent->pattern, message->page->pattern);
            sent->others = message->page->others;
        }
        if (message->slots) {
            note_slots(message, sent);
        }
        assert_true(message->token_size < sizeof sent->token);
        if (message->target != NULL) {
            assert_true(redlock_target_key_size(message->target) < sizeof sent->key);
            memcpy(sent->key, redlock_target_key(message->target), redlock_target_key_size(message->target));
        }
        if (message->token_size) {
            memcpy(sent->token, message->token, message->token_size);
        }
    }
    return taken;
}

static struct redlock_text *refusal(void *ctx, unsigned node) {
    (void)ctx;
    (void)node;
    return NULL;
}

static bool is_too_far(void *ctx, unsigned node) {
    return ((const struct fake_env *)ctx)->far & REDLOCK_NODE(node);
}

static void proven(void *ctx, unsigned node) {
    ((struct fake_env *)ctx)->proven |= REDLOCK_NODE(node);
}

__attribute__((format(printf, 3, 4))) static void take_log(void *ctx, redlock_log_level level, const char *format,
                                                           ...) {
    struct fake_env *fake = ctx;
    const size_t used = strlen(fake->log);
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(fake->log + used, sizeof fake->log - used, format, arguments);
    va_end(arguments);
    assert_true(size > 0 && used + (size_t)size < sizeof fake->log);
    fake->logged[level]++;
}

void fake_env_open(struct fake_env *fake, unsigned node_count, redlock_manager_options config) {
    memset(fake, 0, sizeof *fake);
    fake->node_count = node_count;
    fake->now_ns = 1000 * REDLOCK_NS_PER_MS;
    fake->wall_us = 1795167037123456;
    fake->wake_ns = REDLOCK_NEVER_NS;
    const struct redlock_env env = {.ctx = fake,
                                    .now_ns = now_ns,
                                    .wall_us = wall_us,
                                    .random = random_bytes,
                                    .wake_at = wake_at,
                                    .send = send_message,
                                    .listen = listen_to,
                                    .hear = hear,
                                    .stop_hearing = stop_hearing,
                                    .refusal = refusal,
                                    .is_too_far = is_too_far,
                                    .proven = proven,
                                    .log = take_log};
    config.node_count = node_count;
    config.node_timeout_ms = 50;
    config.connect_timeout_ms = 1000;
    config.log_level = REDLOCK_LOG_DEBUG;
    fake->group = redlock_group_new(&env, &config, names);
    assert_non_null(fake->group);
    fake->group->line.met = redlock_nodes_all(node_count);
}

void fake_env_close(struct fake_env *fake) {
    redlock_group_delete(fake->group);
}

/* As redlock_wire_grants(). A take says which slots it gave. */
static bool may_be_plain(const struct fake_sent *sent) {
    const bool takes = sent->operation == REDLOCK_OP_ACQUIRE && sent->slots.permits > 0;
    return !takes && (sent->operation == REDLOCK_OP_ACQUIRE || sent->operation == REDLOCK_OP_EXTEND ||
                      sent->operation == REDLOCK_OP_RELEASE);
}

static void answer(struct fake_env *fake, struct fake_sent *sent, redlock_vote_kind vote, enum redlock_again again) {
    sent->answered = true;
    if (vote == REDLOCK_VOTE_GRANTED && again == REDLOCK_AGAIN_NOT && may_be_plain(sent)) {
        redlock_group_granted(fake->group, sent->owner, sent->round, sent->node, fake->now_ns);
        return;
    }
    struct redlock_text *text =
        vote == REDLOCK_VOTE_GRANTED ? NULL : redlock_text_new(REDLOCK_CAUSE_NONE, "answer of node %u", sent->node);
    struct redlock_answer given = {.vote = vote,
                                   .read_ns = fake->now_ns,
                                   .again = (uint8_t)again,
                                   .text = text,
                                   .holder = "somebody",
                                   .holder_size = sizeof "somebody" - 1,
                                   .holder_ttl_ms = 1234};
    redlock_group_answer(fake->group, sent->owner, sent->round, sent->node, &given);
    redlock_text_drop(text);
}

struct fake_sent *fake_env_waiting(struct fake_env *fake, unsigned node, enum redlock_operation operation) {
    for (unsigned i = 0; i < fake->sent_count; i++) {
        struct fake_sent *sent = &fake->sent[i];
        if (!sent->answered && sent->node == node && sent->operation == operation) {
            return sent;
        }
    }
    return NULL;
}

unsigned fake_env_waiting_count(const struct fake_env *fake, enum redlock_operation operation) {
    unsigned count = 0;
    for (unsigned i = 0; i < fake->sent_count; i++) {
        count += !fake->sent[i].answered && fake->sent[i].operation == operation;
    }
    return count;
}

void fake_env_answer(struct fake_env *fake, unsigned node, enum redlock_operation operation, redlock_vote_kind vote) {
    struct fake_sent *sent = fake_env_waiting(fake, node, operation);
    assert_non_null(sent);
    answer(fake, sent, vote, REDLOCK_AGAIN_NOT);
}

void fake_env_answer_as(struct fake_env *fake, unsigned node, enum redlock_operation operation,
                        struct redlock_answer given) {
    struct fake_sent *sent = fake_env_waiting(fake, node, operation);
    assert_non_null(sent);
    sent->answered = true;
    given.read_ns = fake->now_ns;
    redlock_group_answer(fake->group, sent->owner, sent->round, node, &given);
}

void fake_env_votes(struct fake_env *fake, enum redlock_operation operation, const char *votes) {
    static const char kinds[] = {[REDLOCK_VOTE_GRANTED] = 'G',
                                 [REDLOCK_VOTE_DENIED] = 'D',
                                 [REDLOCK_VOTE_FAILED] = 'F',
                                 [REDLOCK_VOTE_UNKNOWN] = 'U'};
    for (unsigned i = 0; votes[i] != '\0'; i++) {
        const char *kind = memchr(kinds, votes[i], sizeof kinds);
        assert_true(kind != NULL || votes[i] == '.');
        if (kind != NULL) {
            fake_env_answer(fake, i, operation, (redlock_vote_kind)(kind - kinds));
        }
    }
}

void fake_env_answer_no_script(struct fake_env *fake, unsigned node, enum redlock_operation operation) {
    struct fake_sent *sent = fake_env_waiting(fake, node, operation);
    assert_non_null(sent);
    answer(fake, sent, REDLOCK_VOTE_FAILED, REDLOCK_AGAIN_BY_SOURCE);
}

void fake_env_answer_no_plain_token(struct fake_env *fake, unsigned node) {
    struct fake_sent *sent = fake_env_waiting(fake, node, REDLOCK_OP_RELEASE);
    assert_non_null(sent);
    answer(fake, sent, REDLOCK_VOTE_FAILED, REDLOCK_AGAIN_BY_SCRIPT);
}

void fake_env_queue(struct fake_env *fake, unsigned node, const char *holder, uint32_t rank) {
    fake_env_answer_as(fake, node, REDLOCK_OP_WAIT,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_DENIED,
                                               .holder = holder,
                                               .holder_size = strlen(holder),
                                               .holder_ttl_ms = 1000,
                                               .rank = rank});
}

void fake_env_push(struct fake_env *fake, const struct fake_sent *wait) {
    const struct redlock_push push = {.id = wait->place.id,
                                      .seal = wait->seal,
                                      .round = wait->round,
                                      .token = wait->token,
                                      .token_size = strlen(wait->token),
                                      .key = wait->key,
                                      .key_size = strlen(wait->key)};
    redlock_group_pushed(fake->group, wait->node, &push);
}

void fake_env_answer_all(struct fake_env *fake, redlock_vote_kind vote) {
    for (unsigned i = 0; i < fake->sent_count; i++) {
        if (!fake->sent[i].answered) {
            answer(fake, &fake->sent[i], vote, REDLOCK_AGAIN_NOT);
        }
    }
}

void fake_env_turn(struct fake_env *fake) {
    if (fake->wake_ns <= fake->now_ns) {
        fake->wake_ns = REDLOCK_NEVER_NS;
        redlock_group_wake(fake->group);
    }
}

void fake_env_pass_ms(struct fake_env *fake, int64_t ms) {
    const int64_t until_ns = fake->now_ns + ms * REDLOCK_NS_PER_MS;
    while (fake->wake_ns <= until_ns) {
        if (fake->wake_ns > fake->now_ns) {
            fake->now_ns = fake->wake_ns;
        }
        fake_env_turn(fake);
    }
    fake->now_ns = until_ns;
}
