/* A server's second connection, which only subscribes. */
#include "server/subscription.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/time.h"
#include "server/handshake.h"
#include "wire/error.h"
#include "wire/push.h"

#define NAME_SIZE 80
/* Some proxies close the connection instead of refusing SUBSCRIBE, or let a client have only one.
 * Descriptors, maxclients and firewalls may forbid a second one, too. */
#define UNCONFIRMED_MAX 3
/* An ACL may change. */
#define REFUSED_MIN_MS 1000
#define REFUSED_MAX_MS 10000

enum step { STEP_AUTH, STEP_INFO, STEP_ID, STEP_NAME, STEP_KILL, STEP_SUBSCRIBE };

static int64_t in_ms(const struct redlock_subscription *subscription, int64_t delay_ms) {
    return redlock_after_ms(redlock_link_now_ns(&subscription->link), delay_ms);
}

static void tell(const struct redlock_subscription *subscription, enum redlock_listening listening,
                 struct redlock_text *why) {
    subscription->callbacks->listens(subscription->callbacks->ctx, subscription->index, listening, why);
}

/* Keeps the reason, and takes it over. Returns whether it differs from the last one. */
static bool set_why(struct redlock_subscription *subscription, struct redlock_text *why) {
    const bool is_new = strcmp(redlock_text_string(why), redlock_text_string(subscription->why)) != 0;
    redlock_text_drop(subscription->why);
    subscription->why = why;
    return is_new;
}

/* Those who wait need not rely on this server any more: it cannot tell them of a grant. */
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

/* What was refused may be permitted by now: an ACL may have changed. `ended`: nothing is heard. */
static void ask_again(struct redlock_subscription *subscription, bool ended) {
    const redlock_nodes others = ~REDLOCK_NODE(subscription->index);
    for (struct redlock_channel *channel = subscription->channels->first; channel; channel = channel->next) {
        channel->refused &= others;
        channel->heard &= ended ? others : channel->heard;
    }
}

/* The connection is no more: forgets what was heard, asked or refused on it. */
static void forget_channels(struct redlock_subscription *subscription) {
    subscription->asking = subscription->no_memory = false;
    subscription->asked = NULL;
    subscription->leaving = subscription->leaving_first = 0;
    ask_again(subscription, true);
}

/* Subscribes to the next channel that it does not hear yet. Returns false without memory. */
static bool ask_next(struct redlock_subscription *subscription) {
    const redlock_nodes node = REDLOCK_NODE(subscription->index);
    struct redlock_channel *channel = subscription->channels->first;
    while (channel != NULL && ((channel->heard | channel->refused) & node) != 0) {
        channel = channel->next;
    }
    if (channel == NULL || subscription->asking || !redlock_subscription_listens(subscription)) {
        return true;
    }
    subscription->asking = true;
    subscription->asked = channel;
    subscription->leaving_first = subscription->leaving;
    return redlock_handshake_say(&subscription->link.connection.hello, (const char *[4]){"SUBSCRIBE", channel->name});
}

/* SUBSCRIBE to one of the channels was answered: now it may ask for the next one. */
static void channel_answered(struct redlock_subscription *subscription, bool heard) {
    struct redlock_channel *channel = subscription->asked;
    subscription->asking = false;
    subscription->asked = NULL;
    if (channel != NULL) {
        *(heard ? &channel->heard : &channel->refused) |= REDLOCK_NODE(subscription->index);
        subscription->callbacks->hears(subscription->callbacks->ctx, subscription->index, channel);
    }
    redlock_subscription_hear(subscription);
}

void redlock_subscription_leave(struct redlock_subscription *subscription, const struct redlock_channel *channel) {
    const bool heard = (channel->heard & REDLOCK_NODE(subscription->index)) != 0;
    if (!heard && subscription->asked != channel) {
        return;
    }
    assert(redlock_subscription_listens(subscription));
    subscription->asked = heard ? subscription->asked : NULL;
    subscription->leaving++;
    subscription->no_memory |=
        !redlock_handshake_say(&subscription->link.connection.hello, (const char *[4]){"UNSUBSCRIBE", channel->name});
    redlock_link_flush_soon(&subscription->link);
}

/* This connection ends, and the server may not hear of it. Does nothing if it is closed. */
static void leave_zombie(struct redlock_subscription *subscription) {
    const char *run_id = subscription->run_id;
    if (subscription->link.connection.stream.fd >= 0 && subscription->client_id > 0 && run_id[0] != '\0') {
        subscription->zombie_id = subscription->client_id;
        memcpy(subscription->zombie_run_id, run_id, sizeof subscription->zombie_run_id);
    }
}

/* Whether there is one to kill, on a connection that reaches the server. */
static bool has_zombie(const struct redlock_subscription *subscription) {
    return subscription->zombie_id != 0 && strcmp(subscription->zombie_run_id, subscription->run_id) == 0;
}

/* Takes over the text. Logs the same reason only once, then as DEBUG. Each restart of a server ends
 * a subscription: the first connection warns of that. */
static void lost(struct redlock_subscription *subscription, struct redlock_text *why) {
    assert(subscription->link.state >= REDLOCK_LINK_RESOLVING);
    const struct redlock_reactor *reactor = subscription->link.connection.reactor;
    const bool listened = redlock_subscription_listens(subscription);
    const int64_t up_ns = listened ? subscription->up_ns : REDLOCK_NEVER_NS;
    const int64_t now_ns = redlock_link_now_ns(&subscription->link);
    const int64_t delay_ns = redlock_link_delay_ns(now_ns, subscription->jitter, &subscription->failures, up_ns);
    redlock_log_level level =
        listened && redlock_text_cause(why) == REDLOCK_CAUSE_CONNECTION ? REDLOCK_LOG_INFO : REDLOCK_LOG_WARNING;
    redlock_link_wait(&subscription->link, redlock_after_ns(now_ns, delay_ns));
    forget_channels(subscription);
    level = set_why(subscription, why) ? level : REDLOCK_LOG_DEBUG;
    reactor->log(reactor->ctx, level, "node %s: subscription: %s; next try in about %lld ms",
                 subscription->link.address->name, redlock_text_string(why), (long long)(delay_ns / REDLOCK_NS_PER_MS));
    if (listened) {
        tell(subscription, REDLOCK_LISTENING_NOT, why);
    } else if (subscription->is_ready && ++subscription->unconfirmed == UNCONFIRMED_MAX) {
        give_up(subscription, why);
    }
}

static void no_memory(struct redlock_subscription *subscription) {
    lost(subscription, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for a subscription"));
}

static struct redlock_text *protocol_text(void) {
    return redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE,
                            "the node answers a subscriber out of protocol; is it a Redis server?");
}

static void out_of_protocol(struct redlock_subscription *subscription) {
    lost(subscription, protocol_text());
}

static bool say(struct redlock_subscription *subscription, enum step step, const char *const words[4]) {
    assert(subscription->step_count < REDLOCK_SUBSCRIPTION_STEPS_MAX);
    subscription->steps[subscription->step_count++] = (uint8_t)step;
    return redlock_handshake_say(&subscription->link.connection.hello, words);
}

static bool say_subscribe(struct redlock_subscription *subscription) {
    return say(subscription, STEP_SUBSCRIBE, (const char *[4]){"SUBSCRIBE", subscription->channel});
}

/* Channels belong to no database, so there is no SELECT. A subscriber may not say CLIENT KILL, and
 * before that the server must be known. */
static bool greet(struct redlock_link *link) {
    struct redlock_subscription *subscription = (struct redlock_subscription *)link;
    const char *auth[4];
    char name[NAME_SIZE];
    const int size = snprintf(name, sizeof name, "%s-sub", link->options->client_name);
    subscription->step = subscription->step_count = 0;
    subscription->client_id = 0;
    return (!redlock_handshake_auth(&link->address->credentials, auth) || say(subscription, STEP_AUTH, auth)) &&
           say(subscription, STEP_INFO, (const char *[4]){"INFO", "server"}) &&
           say(subscription, STEP_ID, (const char *[4]){"CLIENT", "ID"}) &&
           (size >= NAME_SIZE || say(subscription, STEP_NAME, (const char *[4]){"CLIENT", "SETNAME", name})) &&
           (has_zombie(subscription) || say_subscribe(subscription));
}

static bool is_array(const struct redlock_reply *reply, const char *word, size_t count) {
    return reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == count &&
           redlock_reply_is(&reply->elements[0], word);
}

static void confirmed(struct redlock_subscription *subscription) {
    assert(subscription->link.state == REDLOCK_LINK_GREETING);
    const struct redlock_reactor *reactor = subscription->link.connection.reactor;
    subscription->up_ns = redlock_link_now_ns(&subscription->link);
    subscription->pinged = false;
    subscription->unconfirmed = subscription->refusals = 0;
    subscription->refused = false;
    (void)set_why(subscription, NULL);
    redlock_outbox_clear(&subscription->link.connection.hello);
    redlock_link_set(&subscription->link, REDLOCK_LINK_OPEN, in_ms(subscription, REDLOCK_PING_EVERY_MS));
    reactor->log(reactor->ctx, REDLOCK_LOG_DEBUG, "node %s: subscribed", subscription->link.address->name);
    tell(subscription, REDLOCK_LISTENING, NULL);
    redlock_subscription_hear(subscription);
}

static void refused(struct redlock_subscription *subscription, struct redlock_text *why) {
    assert(subscription->link.state == REDLOCK_LINK_GREETING);
    const struct redlock_reactor *reactor = subscription->link.connection.reactor;
    const int64_t delay_ns =
        redlock_backoff_ns(subscription->jitter, ++subscription->refusals, REFUSED_MIN_MS, REFUSED_MAX_MS);
    redlock_link_wait(&subscription->link, redlock_after_ns(redlock_link_now_ns(&subscription->link), delay_ns));
    const redlock_log_level level = set_why(subscription, why) ? REDLOCK_LOG_WARNING : REDLOCK_LOG_DEBUG;
    reactor->log(reactor->ctx, level, "node %s: %s", subscription->link.address->name, redlock_text_string(why));
    tell_refused(subscription, why);
}

/* An address may lead to several servers. Pushes of another one grant nothing on this node. */
static void take_info(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    assert(reply->value.type == REDLOCK_REPLY_STRING);
    struct redlock_info info = {.uptime_s = -1};
    redlock_info_parse(&info, reply->value.bytes, reply->value.size);
    if (strcmp(info.run_id, subscription->run_id) != 0) {
        lost(subscription, redlock_text_new(REDLOCK_CAUSE_CONNECTION,
                                            "this is another server than that of the first connection (run_id)"));
    } else if (has_zombie(subscription)) {
        char id[24];
        (void)snprintf(id, sizeof id, "%lld", (long long)subscription->zombie_id);
        subscription->zombie_id = 0;
        if (say(subscription, STEP_KILL, (const char *[4]){"CLIENT", "KILL", "ID", id}) &&
            say_subscribe(subscription)) {
            redlock_link_flush_soon(&subscription->link);
        } else {
            no_memory(subscription);
        }
    }
}

static void take_error(struct redlock_subscription *subscription, enum step step, const struct redlock_reply *reply) {
    assert(reply->value.type == REDLOCK_REPLY_ERROR);
    static const char *const names[] = {"AUTH", "INFO", "CLIENT ID", "CLIENT SETNAME", "CLIENT KILL", "SUBSCRIBE"};
    char error[REDLOCK_WIRE_ERROR_SIZE];
    const bool needless = step == STEP_ID || step == STEP_NAME || step == STEP_KILL;
    if (needless || (step == STEP_INFO && subscription->run_id[0] == '\0')) {
        return; /* the first connection has warned of it */
    }
    (void)redlock_wire_error(&reply->value, subscription->link.address->credentials.password, error);
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
               redlock_reply_is(&reply->elements[1], subscription->channel)) {
        confirmed(subscription);
    } else if (type == REDLOCK_REPLY_INTEGER && step == STEP_ID) {
        subscription->client_id = reply->value.integer;
    } else if (type == REDLOCK_REPLY_INTEGER
                   ? step != STEP_KILL
                   : type != REDLOCK_REPLY_STATUS || step == STEP_INFO || step == STEP_ID || step == STEP_SUBSCRIBE) {
        out_of_protocol(subscription);
    }
}

static void take_refusal(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    assert(subscription->asking && reply->value.type == REDLOCK_REPLY_ERROR);
    const struct redlock_reactor *reactor = subscription->link.connection.reactor;
    char error[REDLOCK_WIRE_ERROR_SIZE];
    (void)redlock_wire_error(&reply->value, subscription->link.address->credentials.password, error);
    struct redlock_text *why =
        redlock_text_new(redlock_wire_cause(&reply->value), "SUBSCRIBE to a leader's channel failed: %s", error);
    if (!redlock_handshake_refused(reply)) {
        lost(subscription, why);
        return;
    }
    reactor->log(reactor->ctx, subscription->refusal_warned ? REDLOCK_LOG_DEBUG : REDLOCK_LOG_WARNING, "node %s: %s",
                 subscription->link.address->name, redlock_text_string(why));
    subscription->refusal_warned = true;
    channel_answered(subscription, false);
    redlock_text_drop(why);
}

/* Somebody has said something on one of the channels, or on the manager's own. */
static void take_message(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    const struct redlock_reactor *reactor = subscription->link.connection.reactor;
    const struct redlock_server_callbacks *callbacks = subscription->callbacks;
    struct redlock_push push;
    struct redlock_hint hint;
    if (redlock_wire_push(reply, subscription->channel, &push)) {
        callbacks->pushed(callbacks->ctx, subscription->index, &push);
    } else if (redlock_wire_hint(reply, &hint)) {
        callbacks->hinted(callbacks->ctx, subscription->index, &hint);
    } else if (!subscription->push_warned) {
        subscription->push_warned = true;
        reactor->log(reactor->ctx, REDLOCK_LOG_WARNING, "node %s: a message on the channel %s is not ours, and ignored",
                     subscription->link.address->name, subscription->channel);
    }
}

static void take(struct redlock_connection *connection, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_subscription *subscription = (struct redlock_subscription *)connection;
    (void)now_ns;
    if (subscription->link.state == REDLOCK_LINK_GREETING) {
        take_greeting(subscription, reply);
    } else if (is_array(reply, "message", 3)) {
        take_message(subscription, reply);
    } else if (is_array(reply, "pong", 2) && subscription->pinged) {
        subscription->pinged = false;
        redlock_link_set(&subscription->link, REDLOCK_LINK_OPEN, in_ms(subscription, REDLOCK_PING_EVERY_MS));
    } else if (subscription->asking && is_array(reply, "subscribe", 3) &&
               (subscription->asked == NULL || redlock_reply_is(&reply->elements[1], subscription->asked->name))) {
        channel_answered(subscription, true);
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

static struct redlock_text *why(const struct redlock_link *link, enum redlock_received received, int error) {
    if (received == REDLOCK_RECEIVED_END) {
        return redlock_link_read_text(&link->connection, error);
    }
    return redlock_reader_is_full(link->connection.reader)
               ? redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE,
                                  "a message was too large: more than 1 MiB; somebody publishes to channels of redlock "
                                  "what no client of it does")
               : protocol_text();
}

static void failed(struct redlock_link *link, struct redlock_text *text) {
    lost((struct redlock_subscription *)link, text);
}

static void on_flush(struct redlock_watch *watch) {
    struct redlock_subscription *subscription = (struct redlock_subscription *)watch;
    if (subscription->no_memory || !ask_next(subscription)) {
        no_memory(subscription);
    } else {
        redlock_link_flush(watch);
    }
}

static void ping(struct redlock_subscription *subscription) {
    if (!redlock_handshake_say(&subscription->link.connection.hello, (const char *[4]){"PING"})) {
        no_memory(subscription);
        return;
    }
    subscription->pinged = true;
    ask_again(subscription, false);
    redlock_link_set(&subscription->link, REDLOCK_LINK_OPEN, in_ms(subscription, REDLOCK_PONG_LIMIT_MS));
    redlock_link_flush_soon(&subscription->link);
}

static void due(struct redlock_link *link) {
    struct redlock_subscription *subscription = (struct redlock_subscription *)link;
    if (link->state == REDLOCK_LINK_WAITING) {
        redlock_link_begin(link);
        redlock_link_open(link, subscription->endpoint, 1);
    } else if (!subscription->pinged) {
        assert(link->state == REDLOCK_LINK_OPEN); /* OFF has no time */
        ping(subscription);
    } else {
        leave_zombie(subscription);
        lost(subscription,
             redlock_text_new(REDLOCK_CAUSE_STALLED, "no answer to PING within %d ms", REDLOCK_PONG_LIMIT_MS));
    }
}

int redlock_subscription_init(struct redlock_subscription *subscription, const struct redlock_reactor *reactor,
                              const struct redlock_address *address, const struct redlock_server_options *options) {
    static const struct redlock_link_ops ops = {.purpose = "a subscription",
                                                .lacks = "not subscribed",
                                                .greet = greet,
                                                .take = take,
                                                .why = why,
                                                .failed = failed,
                                                .due = due};
    static const struct redlock_channels none = {.first = NULL};
    subscription->channels = &none;
    const int error = redlock_link_init(&subscription->link, &ops, reactor, address, options);
    subscription->link.connection.watch.on_flush = on_flush;
    return error;
}

void redlock_subscription_free(struct redlock_subscription *subscription) {
    redlock_connection_free(&subscription->link.connection);
    redlock_text_drop(subscription->why);
}

void redlock_subscription_begin(struct redlock_subscription *subscription) {
    /* It may have begun with the greeting: who heard it waits at once. */
    if (subscription->channel != NULL && subscription->link.state == REDLOCK_LINK_OFF) {
        subscription->failures = subscription->unconfirmed = subscription->refusals = 0;
        redlock_link_set(&subscription->link, REDLOCK_LINK_WAITING, redlock_link_now_ns(&subscription->link));
    }
}

void redlock_subscription_hear(struct redlock_subscription *subscription) {
    if (redlock_subscription_listens(subscription)) {
        redlock_link_flush_soon(&subscription->link);
    }
}

void redlock_subscription_end(struct redlock_subscription *subscription, struct redlock_text *why) {
    const bool listened = redlock_subscription_listens(subscription);
    if (subscription->link.state == REDLOCK_LINK_OFF) {
        return;
    }
    leave_zombie(subscription);
    redlock_link_end(&subscription->link);
    forget_channels(subscription);
    subscription->refused = false;
    if (listened) {
        tell(subscription, REDLOCK_LISTENING_NOT, why);
    }
}
