/* A node's second connection, which only subscribes. */
#include "node/subscription.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/time.h"
#include "node/failure.h"
#include "node/hearing.h"
#include "node/node_state.h"
#include "node/secure.h"
#include "node/zombie.h"
#include "wire/cause.h"
#include "wire/error.h"

#define NAME_SIZE 80
/* Some proxies close the connection instead of refusing SUBSCRIBE, or let a client have only one.
 * Descriptors, maxclients and firewalls may forbid a second one, too. */
#define UNCONFIRMED_MAX 3
/* An ACL may change. */
#define REFUSED_MIN_MS 1000
#define REFUSED_MAX_MS 10000

enum step { STEP_AUTH, STEP_INFO, STEP_ID, STEP_NAME, STEP_KILL, STEP_SUBSCRIBE };

static void set_timer(struct redlock_subscription *subscription) {
    const struct redlock_reactor *reactor = &subscription->node->reactor;
    reactor->timer_at(reactor->ctx, &subscription->connection.watch,
                      subscription->connection.unread ? reactor->now_ns(reactor->ctx) : subscription->due_ns);
}

static void set_state(struct redlock_subscription *subscription, enum redlock_subscription_state state,
                      int64_t due_ns) {
    subscription->state = state;
    subscription->due_ns = due_ns;
    set_timer(subscription);
}

static int64_t in_ms(const struct redlock_subscription *subscription, int64_t delay_ms) {
    return redlock_after_ms(redlock_node_now_ns(subscription->node), delay_ms);
}

static void flush_soon(struct redlock_subscription *subscription) {
    const struct redlock_reactor *reactor = &subscription->node->reactor;
    reactor->flush_soon(reactor->ctx, &subscription->connection.watch);
}

static void tell(const struct redlock_subscription *subscription, enum redlock_listening listening,
                 struct redlock_text *why) {
    const struct redlock_node *node = subscription->node;
    node->listener.listens(node->listener.ctx, node->index, listening, why);
}

/* Keeps the reason, and takes it over. Returns whether it differs from the last one. */
static bool set_why(struct redlock_subscription *subscription, struct redlock_text *why) {
    const bool news = strcmp(redlock_text_string(why), redlock_text_string(subscription->why)) != 0;
    redlock_text_drop(subscription->why);
    subscription->why = why;
    return news;
}

/* Those who wait need not rely on this node any more: it cannot tell them of a grant. */
static void tell_refused(struct redlock_subscription *subscription, struct redlock_text *why) {
    if (!subscription->refused) {
        subscription->refused = true;
        tell(subscription, REDLOCK_LISTENING_REFUSED, why);
    }
}

static void give_up(struct redlock_subscription *subscription, const struct redlock_text *why) {
    struct redlock_text *text =
        redlock_text_new(redlock_text_cause(why),
                         "%d tries in a row gave no second connection, on which it would tell of a lock that is handed "
                         "to us (%s); look at the limits of open files, connections and clients, and at firewalls and "
                         "proxies; tried again all the time",
                         UNCONFIRMED_MAX, redlock_text_string(why));
    tell_refused(subscription, text);
    redlock_text_drop(text);
}

static void leave_listening(struct redlock_subscription *subscription) {
    redlock_connection_reset(&subscription->connection);
    redlock_hearing_forget(subscription);
}

/* Takes over the text. Logs the same reason only once, then as DEBUG. Each restart of a server ends
 * a subscription: the first connection warns of that. */
static void lost(struct redlock_subscription *subscription, struct redlock_text *why) {
    struct redlock_node *node = subscription->node;
    const bool listened = subscription->state == REDLOCK_SUBSCRIPTION_LISTENING;
    const int64_t up_ns = listened ? subscription->up_ns : REDLOCK_NEVER_NS;
    const int64_t delay_ns = redlock_node_delay_ns(node, &subscription->failures, up_ns);
    redlock_log_level level =
        listened && redlock_text_cause(why) == REDLOCK_CAUSE_CONNECTION ? REDLOCK_LOG_INFO : REDLOCK_LOG_WARNING;
    leave_listening(subscription);
    set_state(subscription, REDLOCK_SUBSCRIPTION_WAITING, redlock_after_ns(redlock_node_now_ns(node), delay_ns));
    level = set_why(subscription, why) ? level : REDLOCK_LOG_DEBUG;
    node->reactor.log(node->reactor.ctx, level, "node %s: subscription: %s; next try in about %lld ms",
                      node->address.name, redlock_text_string(why), (long long)(delay_ns / REDLOCK_NS_PER_MS));
    if (listened) {
        tell(subscription, REDLOCK_LISTENING_NOT, why);
    } else if (node->phase == REDLOCK_PHASE_READY && ++subscription->unconfirmed == UNCONFIRMED_MAX) {
        give_up(subscription, why);
    }
}

static void no_memory(struct redlock_subscription *subscription) {
    lost(subscription, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for a subscription"));
}

static void out_of_protocol(struct redlock_subscription *subscription) {
    lost(subscription, redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE,
                                        "the node answers a subscriber out of protocol; is it a Redis server?"));
}

static void open_it(struct redlock_subscription *subscription) {
    const struct redlock_node *node = subscription->node;
    const struct redlock_endpoint *endpoint = &node->endpoint;
    int error =
        redlock_connection_open(&subscription->connection, (const struct sockaddr *)&endpoint->address, endpoint->size);
    if (error != 0) {
        lost(subscription, redlock_node_errno_text("", error));
        return;
    }
    set_state(subscription, REDLOCK_SUBSCRIPTION_OPENING, in_ms(subscription, node->options.connect_timeout_ms));
}

static bool say(struct redlock_subscription *subscription, enum step step, const char *const words[4]) {
    assert(subscription->step_count < REDLOCK_SUBSCRIPTION_STEPS_MAX);
    subscription->steps[subscription->step_count++] = (uint8_t)step;
    return redlock_handshake_say(&subscription->connection.hello, words);
}

static bool say_subscribe(struct redlock_subscription *subscription) {
    return say(subscription, STEP_SUBSCRIBE, (const char *[4]){"SUBSCRIBE", subscription->channel});
}

/* Channels belong to no database, so there is no SELECT. A subscriber may not say CLIENT KILL, and
 * before that the server must be known. */
static bool say_all(struct redlock_subscription *subscription) {
    const struct redlock_node *node = subscription->node;
    const char *auth[4];
    char name[NAME_SIZE];
    const int size = snprintf(name, sizeof name, "%s-sub", node->options.client_name);
    subscription->step = subscription->step_count = 0;
    redlock_zombie_note(subscription, 0);
    return (!redlock_handshake_auth(&node->address.credentials, auth) || say(subscription, STEP_AUTH, auth)) &&
           say(subscription, STEP_INFO, (const char *[4]){"INFO", "server"}) &&
           say(subscription, STEP_ID, (const char *[4]){"CLIENT", "ID"}) &&
           (size >= NAME_SIZE || say(subscription, STEP_NAME, (const char *[4]){"CLIENT", "SETNAME", name})) &&
           (redlock_zombie_is_there(subscription) || say_subscribe(subscription));
}

static void greet(struct redlock_subscription *subscription) {
    if (!redlock_connection_start(&subscription->connection) || !say_all(subscription)) {
        no_memory(subscription);
    } else {
        set_state(subscription, REDLOCK_SUBSCRIPTION_GREETING, subscription->due_ns);
        flush_soon(subscription);
    }
}

static void secure(struct redlock_subscription *subscription, unsigned events) {
    struct redlock_text *why = NULL;
    const enum redlock_securing securing = redlock_secure_io(&subscription->connection, events, &why);
    if (securing == REDLOCK_SECURING_DONE) {
        greet(subscription);
    } else if (securing == REDLOCK_SECURING_FAILED) {
        lost(subscription, why);
    }
}

static void opened(struct redlock_subscription *subscription) {
    const struct redlock_node *node = subscription->node;
    int error = redlock_connection_opened(&subscription->connection);
    if (error != 0) {
        lost(subscription, redlock_node_errno_text("", error));
    } else if (!node->address.tls) {
        greet(subscription);
    } else if (!redlock_secure_begin(node, &subscription->connection)) {
        no_memory(subscription);
    } else {
        subscription->state = REDLOCK_SUBSCRIPTION_SECURING;
        secure(subscription, 0);
    }
}

static bool is_word(const struct redlock_reply_value *value, const char *word) {
    const size_t size = strlen(word);
    return value->type == REDLOCK_REPLY_STRING && value->size == size && memcmp(value->bytes, word, size) == 0;
}

static bool is_array(const struct redlock_reply *reply, const char *word, size_t count) {
    return reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == count &&
           is_word(&reply->elements[0], word);
}

static void confirmed(struct redlock_subscription *subscription) {
    const struct redlock_node *node = subscription->node;
    subscription->up_ns = redlock_node_now_ns(node);
    subscription->pinged = false;
    subscription->unconfirmed = subscription->refusals = 0;
    subscription->refused = false;
    (void)set_why(subscription, NULL);
    redlock_outbox_clear(&subscription->connection.hello);
    set_state(subscription, REDLOCK_SUBSCRIPTION_LISTENING, in_ms(subscription, REDLOCK_PING_EVERY_MS));
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_DEBUG, "node %s: subscribed", node->address.name);
    tell(subscription, REDLOCK_LISTENING, NULL);
    redlock_subscription_hear(subscription);
}

static void refused(struct redlock_subscription *subscription, struct redlock_text *why) {
    struct redlock_node *node = subscription->node;
    const int64_t delay_ns =
        redlock_backoff_ns(&node->jitter, ++subscription->refusals, REFUSED_MIN_MS, REFUSED_MAX_MS);
    redlock_connection_reset(&subscription->connection);
    set_state(subscription, REDLOCK_SUBSCRIPTION_REFUSED, redlock_after_ns(redlock_node_now_ns(node), delay_ns));
    const redlock_log_level level = set_why(subscription, why) ? REDLOCK_LOG_WARNING : REDLOCK_LOG_DEBUG;
    node->reactor.log(node->reactor.ctx, level, "node %s: %s", node->address.name, redlock_text_string(why));
    tell_refused(subscription, why);
}

/* An address may lead to several servers. Pushes of another one grant nothing on this node. */
static void take_info(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    struct redlock_info info = {.uptime_s = -1};
    redlock_info_parse(&info, reply->value.bytes, reply->value.size);
    if (strcmp(info.run_id, subscription->node->info.run_id) != 0) {
        lost(subscription, redlock_text_new(REDLOCK_CAUSE_CONNECTION,
                                            "this is another server than that of the first connection (run_id)"));
    } else if (redlock_zombie_is_there(subscription)) {
        subscription->steps[subscription->step_count++] = STEP_KILL;
        if (redlock_zombie_kill(subscription) && say_subscribe(subscription)) {
            flush_soon(subscription);
        } else {
            no_memory(subscription);
        }
    }
}

static void take_error(struct redlock_subscription *subscription, enum step step, const struct redlock_reply *reply) {
    static const char *const names[] = {"AUTH", "INFO", "CLIENT ID", "CLIENT SETNAME", "CLIENT KILL", "SUBSCRIBE"};
    const struct redlock_node *node = subscription->node;
    char error[REDLOCK_WIRE_ERROR_SIZE];
    const bool needless = step == STEP_ID || step == STEP_NAME || step == STEP_KILL;
    if (needless || (step == STEP_INFO && node->info.run_id[0] == '\0')) {
        return; /* the first connection has warned of it */
    }
    (void)redlock_wire_error(&reply->value, node->address.credentials.password, error);
    const enum redlock_cause cause = redlock_wire_cause(&reply->value);
    if (step == STEP_SUBSCRIBE && redlock_handshake_refused(reply)) {
        refused(subscription, redlock_text_new(cause, "SUBSCRIBE refused (%s)", error));
    } else {
        lost(subscription, redlock_text_new(cause, "%s failed: %s", names[step], error));
    }
}

static void take_greeting(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    const enum redlock_reply_type type = reply->value.type;
    assert(subscription->step < subscription->step_count);
    const enum step step = (enum step)subscription->steps[subscription->step++];
    if (type == REDLOCK_REPLY_ERROR) {
        take_error(subscription, step, reply);
    } else if (step == STEP_INFO && type == REDLOCK_REPLY_STRING) {
        take_info(subscription, reply);
    } else if (step == STEP_SUBSCRIBE && is_array(reply, "subscribe", 3) &&
               is_word(&reply->elements[1], subscription->channel)) {
        confirmed(subscription);
    } else if (type == REDLOCK_REPLY_INTEGER && step == STEP_ID) {
        redlock_zombie_note(subscription, reply->value.integer);
    } else if (type == REDLOCK_REPLY_INTEGER
                   ? step != STEP_KILL
                   : type != REDLOCK_REPLY_STATUS || step == STEP_INFO || step == STEP_ID || step == STEP_SUBSCRIBE) {
        out_of_protocol(subscription);
    }
}

static void take_refusal(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    const struct redlock_node *node = subscription->node;
    char error[REDLOCK_WIRE_ERROR_SIZE];
    (void)redlock_wire_error(&reply->value, node->address.credentials.password, error);
    struct redlock_text *why =
        redlock_text_new(redlock_wire_cause(&reply->value), "SUBSCRIBE to a leader's channel failed: %s", error);
    if (!redlock_handshake_refused(reply)) {
        lost(subscription, why);
        return;
    }
    node->reactor.log(node->reactor.ctx, subscription->refusal_warned ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_WARNING,
                      "node %s: %s", node->address.name, redlock_text_string(why));
    subscription->refusal_warned = true;
    redlock_hearing_answered(subscription, false);
    redlock_subscription_hear(subscription);
    redlock_text_drop(why);
}

static void take_reply(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    if (subscription->state == REDLOCK_SUBSCRIPTION_GREETING) {
        take_greeting(subscription, reply);
    } else if (is_array(reply, "message", 3)) {
        redlock_hearing_message(subscription, reply);
    } else if (is_array(reply, "pong", 2) && subscription->pinged) {
        subscription->pinged = false;
        set_state(subscription, REDLOCK_SUBSCRIPTION_LISTENING, in_ms(subscription, REDLOCK_PING_EVERY_MS));
    } else if (subscription->asking && is_array(reply, "subscribe", 3) &&
               (subscription->asked == NULL || is_word(&reply->elements[1], subscription->asked->name))) {
        redlock_hearing_answered(subscription, true);
        redlock_subscription_hear(subscription);
    } else if (subscription->asking && subscription->leaving_first == 0 && reply->value.type == REDLOCK_REPLY_ERROR) {
        take_refusal(subscription, reply);
    } else if (subscription->leaving > 0 &&
               (is_array(reply, "unsubscribe", 3) || reply->value.type == REDLOCK_REPLY_ERROR)) {
        /* If it is refused, what the channel still says is about nobody. */
        subscription->leaving--;
        subscription->leaving_first -= subscription->leaving_first > 0;
    } else {
        out_of_protocol(subscription);
    }
}

static void take(struct redlock_connection *connection, const struct redlock_reply *reply, int64_t now_ns) {
    (void)now_ns;
    take_reply((struct redlock_subscription *)connection, reply);
}

static void read_replies(struct redlock_subscription *subscription) {
    int error;
    switch (redlock_connection_receive(&subscription->connection, take, &error)) {
    case REDLOCK_RECEIVED:
        break;
    case REDLOCK_RECEIVED_UNREAD:
        set_timer(subscription);
        break;
    case REDLOCK_RECEIVED_END:
        lost(subscription, redlock_node_read_text(&subscription->connection, error));
        break;
    case REDLOCK_RECEIVED_PROTOCOL:
        if (redlock_reader_is_full(subscription->connection.reader)) {
            lost(subscription, redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE,
                                                "a message was too large: more than 1 MiB; somebody publishes to "
                                                "channels of redlock what no client of it does"));
        } else {
            out_of_protocol(subscription);
        }
        break;
    }
}

static void on_flush(struct redlock_watch *watch) {
    struct redlock_subscription *subscription = (struct redlock_subscription *)watch;
    if (subscription->no_memory || !redlock_hearing_ask(subscription)) {
        no_memory(subscription);
        return;
    }
    if (subscription->state <= REDLOCK_SUBSCRIPTION_SECURING) {
        return; /* the last connection asked */
    }
    int error = redlock_connection_write(&subscription->connection, &subscription->connection.hello);
    if (error != 0) {
        lost(subscription, redlock_node_read_text(&subscription->connection, error));
    }
}

static void on_io(struct redlock_watch *watch, unsigned events) {
    struct redlock_subscription *subscription = (struct redlock_subscription *)watch;
    struct redlock_connection *connection = &subscription->connection;
    if (subscription->state == REDLOCK_SUBSCRIPTION_OPENING) {
        opened(subscription);
        return;
    }
    if (subscription->state == REDLOCK_SUBSCRIPTION_SECURING) {
        secure(subscription, events);
        return;
    }
    if ((events & REDLOCK_READABLE) != 0) {
        read_replies(subscription);
    }
    if (connection->fd >= 0 && connection->blocked && (events & REDLOCK_WRITABLE) != 0) {
        redlock_connection_unblock(connection);
        on_flush(watch);
    }
}

static void ping(struct redlock_subscription *subscription) {
    if (!redlock_handshake_say(&subscription->connection.hello, (const char *[4]){"PING"})) {
        no_memory(subscription);
        return;
    }
    subscription->pinged = true;
    redlock_hearing_ask_again(subscription);
    set_state(subscription, REDLOCK_SUBSCRIPTION_LISTENING, in_ms(subscription, REDLOCK_PONG_LIMIT_MS));
    flush_soon(subscription);
}

static void too_late(struct redlock_subscription *subscription) {
    /* The loop may run late: what has come, came in time (R7). */
    read_replies(subscription);
    if (subscription->state == REDLOCK_SUBSCRIPTION_LISTENING && subscription->pinged) {
        redlock_zombie_left(subscription);
        lost(subscription,
             redlock_text_new(REDLOCK_CAUSE_STALLED, "no answer to PING within %d ms", REDLOCK_PONG_LIMIT_MS));
    } else if (subscription->state == REDLOCK_SUBSCRIPTION_GREETING) {
        lost(subscription, redlock_text_new(REDLOCK_CAUSE_CONNECTION, "connected, but not subscribed within %lld ms",
                                            (long long)subscription->node->options.connect_timeout_ms));
    }
}

static void due(struct redlock_subscription *subscription) {
    switch (subscription->state) {
    case REDLOCK_SUBSCRIPTION_WAITING:
    case REDLOCK_SUBSCRIPTION_REFUSED:
        open_it(subscription);
        break;
    case REDLOCK_SUBSCRIPTION_OPENING:
        lost(subscription, redlock_text_new(REDLOCK_CAUSE_CONNECTION, "no connection within %lld ms",
                                            (long long)subscription->node->options.connect_timeout_ms));
        break;
    case REDLOCK_SUBSCRIPTION_SECURING:
        lost(subscription, redlock_secure_late_text(subscription->node, &subscription->connection));
        break;
    case REDLOCK_SUBSCRIPTION_LISTENING:
        if (!subscription->pinged) {
            ping(subscription);
            break;
        }
        /* fall through */
    case REDLOCK_SUBSCRIPTION_GREETING:
        too_late(subscription);
        break;
    case REDLOCK_SUBSCRIPTION_OFF:
        break;
    }
}

static void on_timer(struct redlock_watch *watch) {
    struct redlock_subscription *subscription = (struct redlock_subscription *)watch;
    if (subscription->connection.unread) {
        read_replies(subscription);
    }
    if (redlock_node_now_ns(subscription->node) < subscription->due_ns) {
        set_timer(subscription);
    } else {
        due(subscription);
    }
}

int redlock_subscription_init(struct redlock_subscription *subscription, struct redlock_node *node) {
    subscription->connection.watch = (struct redlock_watch){.on_io = on_io, .on_timer = on_timer, .on_flush = on_flush};
    subscription->node = node;
    subscription->due_ns = REDLOCK_NEVER_NS;
    return redlock_connection_init(&subscription->connection, &node->reactor);
}

void redlock_subscription_free(struct redlock_subscription *subscription) {
    redlock_connection_free(&subscription->connection);
    redlock_text_drop(subscription->why);
}

void redlock_subscription_begin(struct redlock_subscription *subscription) {
    assert(subscription->state == REDLOCK_SUBSCRIPTION_OFF);
    if (subscription->channel != NULL) {
        subscription->failures = subscription->unconfirmed = subscription->refusals = 0;
        set_state(subscription, REDLOCK_SUBSCRIPTION_WAITING, redlock_node_now_ns(subscription->node));
    }
}

void redlock_subscription_hear(struct redlock_subscription *subscription) {
    if (subscription->state == REDLOCK_SUBSCRIPTION_LISTENING) {
        flush_soon(subscription);
    }
}

void redlock_subscription_end(struct redlock_subscription *subscription) {
    const bool listened = subscription->state == REDLOCK_SUBSCRIPTION_LISTENING;
    if (subscription->state == REDLOCK_SUBSCRIPTION_OFF) {
        return;
    }
    redlock_zombie_left(subscription);
    leave_listening(subscription);
    subscription->refused = false;
    set_state(subscription, REDLOCK_SUBSCRIPTION_OFF, REDLOCK_NEVER_NS);
    if (listened) {
        tell(subscription, REDLOCK_LISTENING_NOT, subscription->node->why);
    }
}
