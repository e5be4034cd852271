/* The other channels of a node's second connection: when it subscribes to them, hears them, and
 * leaves them. */
#include "scarce_memory.h"
#include "subscriber.h"
#include "test.h"

#define ASK(name)         "*2\r\n$9\r\nSUBSCRIBE\r\n$16\r\nredlock:leader:" name "\r\n"
#define LEAVE(name)       "*2\r\n$11\r\nUNSUBSCRIBE\r\n$16\r\nredlock:leader:" name "\r\n"
#define HEARD(name)       "*3\r\n$9\r\nsubscribe\r\n$16\r\nredlock:leader:" name "\r\n:2\r\n"
#define LEFT(name)        "*3\r\n$11\r\nunsubscribe\r\n$16\r\nredlock:leader:" name "\r\n:1\r\n"
#define SAID(name, bytes) "*3\r\n$7\r\nmessage\r\n$16\r\nredlock:leader:" name "\r\n" bytes
#define NOPERM            "-NOPERM this user has no permissions to access one of the channels\r\n"

static struct redlock_channels channels;

/* A new channel is the first of the list. */
static struct redlock_channel *add(const char *name) {
    struct redlock_channel *channel = __real_malloc(sizeof *channel + 32);
    assert_non_null(channel);
    *channel = (struct redlock_channel){.next = channels.first};
    strcpy(channel->name, name);
    channels.first = channel;
    redlock_node_hear(peer.node, &channels);
    return channel;
}

static void take_out(struct redlock_channel *channel) {
    struct redlock_channel **link = &channels.first;
    while (*link != channel) {
        link = &(*link)->next;
    }
    *link = channel->next;
    redlock_node_leave(peer.node, channel);
    memset(channel, 'x', sizeof *channel);
    free(channel);
}

static int setup(void **state) {
    memset(&memory, 0, sizeof memory);
    return subscriber_setup(state);
}

static int teardown(void **state) {
    const int result = subscriber_teardown(state);
    while (channels.first != NULL) {
        struct redlock_channel *channel = channels.first;
        channels.first = channel->next;
        free(channel);
    }
    return result;
}

static void until_told_hears(const struct redlock_channel *channel, bool heard) {
    const int before = peer.told_hears;
    PEER_UNTIL(&second, peer.told_hears > before);
    assert_int_equal(peer.told_hears, before + 1);
    assert_ptr_equal(peer.hears, channel);
    assert_int_equal(channel->heard, heard);
}

/* It listens, and hears this channel. */
static struct redlock_channel *hear(const char *name, const char *ask, const char *heard) {
    struct redlock_channel *channel = add(name);
    peer_serve(&second, ask, heard);
    until_told_hears(channel, true);
    return channel;
}

static void assert_says_nothing(void) {
    peer_turn(&peer);
    peer_turn(&second);
    assert_int_equal(second.heard_size, 0);
}

#define FRESH_TEST(name) TEST_WITH(name, setup, teardown)

FRESH_TEST(it_subscribes_to_one_after_the_other) {
    listen_on_it();
    struct redlock_channel *a = add("redlock:leader:a"), *b = add("redlock:leader:b");
    peer_expect(&second, ASK("b"));
    assert_says_nothing();
    peer_say(&second, HEARD("b"));
    until_told_hears(b, true);
    peer_serve(&second, ASK("a"), HEARD("a"));
    until_told_hears(a, true);
    assert_says_nothing();
    redlock_node_hear(peer.node, &channels); /* nothing new */
    assert_says_nothing();
    (void)hear("redlock:leader:c", ASK("c"), HEARD("c"));
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(announcements_are_told) {
    listen_on_it();
    (void)hear("redlock:leader:a", ASK("a"), HEARD("a"));
    peer_say(&second, SAID("a", "$8\r\n5000 tok\r\n"));
    PEER_UNTIL(&second, peer.hints == 1);
    assert_string_equal(peer.hinted, "a");
    peer_say(&second, SAID("a", "$0\r\n\r\n") A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_int_equal(peer.hints, 2);
    /* Whatever it says: it may be anybody. */
    peer_say(&second, SAID("a", "$5\r\nhello\r\n") SAID("a", ":1\r\n") A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 2);
    assert_int_equal(peer.hints, 4);
    assert_int_equal(count_in_log("is not ours"), 0);
}

/* It listens to the manager's own first, so this is one greeting for all. */
FRESH_TEST(a_new_connection_hears_all_again) {
    listen_on_it();
    struct redlock_channel *a = hear("redlock:leader:a", ASK("a"), HEARD("a"));
    struct redlock_channel *b = add("redlock:leader:b");
    peer_serve(&second, ASK("b"), NOPERM);
    until_told_hears(b, false);
    assert_int_equal(b->refused, 1);
    for (int first = 0; first < 2; first++) {
        if (first) { /* the first connection ends, and with it the second */
            peer_close(&peer);
            peer_until_state(&peer, REDLOCK_NODE_WAITING);
            peer_greet(&peer, "r1", 8, 7);
        } else {
            peer_close(&second);
            until_told(REDLOCK_LISTENING_NOT, "connection closed");
        }
        assert_int_equal(a->heard | a->refused | b->heard | b->refused, 0);
        (first ? greet_second_that_kills : greet_second)();
        peer_serve(&second, ASK("b"), HEARD("b"));
        until_told_hears(b, true);
        peer_serve(&second, ASK("a"), HEARD("a"));
        until_told_hears(a, true);
    }
}

FRESH_TEST(before_it_listens_it_only_remembers) {
    redlock_node_listen(peer.node, "ch");
    struct redlock_channel *a = add("redlock:leader:a"), *b = add("redlock:leader:b");
    take_out(b);
    connect_it();
    greet_second();
    peer_serve(&second, ASK("a"), HEARD("a"));
    until_told_hears(a, true);
    assert_says_nothing();
}

/* An ACL may have changed since. */
FRESH_TEST(what_was_refused_is_asked_for_again_with_each_ping) {
    listen_on_it();
    struct redlock_channel *a = add("redlock:leader:a");
    peer_serve(&second, ASK("a"), NOPERM);
    until_told_hears(a, false);
    peer_serve(&second, PING ASK("a"), PONG NOPERM);
    until_told_hears(a, false);
    assert_int_equal(a->refused, 1);
    peer_serve(&second, PING ASK("a"), PONG HEARD("a"));
    until_told_hears(a, true);
    assert_int_equal(count_in_log("SUBSCRIBE to a leader's channel failed"), 1);
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(a_channel_without_permission_is_refused_alone) {
    listen_on_it();
    struct redlock_channel *a = add("redlock:leader:a");
    peer_serve(&second, ASK("a"), NOPERM);
    until_told_hears(a, false);
    assert_int_equal(a->refused, 1);
    struct redlock_channel *b = add("redlock:leader:b");
    peer_serve(&second, ASK("b"), NOPERM);
    until_told_hears(b, false);
    (void)hear("redlock:leader:c", ASK("c"), HEARD("c"));
    take_out(a); /* nothing to leave */
    assert_says_nothing();
    assert_int_equal(count_in_log("SUBSCRIBE to a leader's channel failed: NOPERM"), 1);
    peer_say(&second, A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(any_other_error_ends_it) {
    listen_on_it();
    struct redlock_channel *a = add("redlock:leader:a");
    peer_serve(&second, ASK("a"), "-ERR later\r\n");
    until_told(REDLOCK_LISTENING_NOT, "SUBSCRIBE to a leader's channel failed: ERR later");
    assert_int_equal(a->heard | a->refused, 0);
    greet_second();
    peer_serve(&second, ASK("a"), HEARD("a"));
    until_told_hears(a, true);
}

FRESH_TEST(a_channel_is_left) {
    listen_on_it();
    struct redlock_channel *a = hear("redlock:leader:a", ASK("a"), HEARD("a"));
    take_out(a);
    peer_expect(&second, LEAVE("a"));
    /* A last word is told; nobody cares. */
    peer_say(&second, SAID("a", "$0\r\n\r\n") LEFT("a") A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    a = hear("redlock:leader:a", ASK("a"), HEARD("a"));
    /* At once again. */
    take_out(a);
    a = add("redlock:leader:a");
    peer_serve(&second, LEAVE("a") ASK("a"), LEFT("a") HEARD("a"));
    until_told_hears(a, true);
    assert_int_equal(peer.told_listening, 1);
}

/* The answer that is to come is that of nobody, and the next one is asked after it. */
FRESH_TEST(a_channel_may_leave_while_it_is_asked) {
    static const char *const answers[] = {HEARD("a") LEFT("a"), NOPERM LEFT("a")};
    listen_on_it();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct redlock_channel *a = add("redlock:leader:a");
        peer_expect(&second, ASK("a"));
        take_out(a);
        struct redlock_channel *b = add("redlock:leader:b");
        peer_expect(&second, LEAVE("a"));
        assert_says_nothing();
        const int told = peer.told_hears;
        peer_say(&second, answers[i]);
        peer_expect(&second, ASK("b"));
        assert_int_equal(peer.told_hears, told);
        peer_say(&second, HEARD("b"));
        until_told_hears(b, true);
        take_out(b);
        peer_serve(&second, LEAVE("b"), LEFT("b"));
    }
    peer_say(&second, A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_int_equal(peer.told_listening, 1);
}

/* Without permission to leave, it stays and says nothing that counts. Errors come in order: this
 * one is not about the channel that is asked for. */
FRESH_TEST(leaving_may_be_refused) {
    listen_on_it();
    struct redlock_channel *a = hear("redlock:leader:a", ASK("a"), HEARD("a"));
    struct redlock_channel *b = hear("redlock:leader:b", ASK("b"), HEARD("b"));
    take_out(a);
    take_out(b);
    struct redlock_channel *c = add("redlock:leader:c");
    peer_serve(&second, LEAVE("a") LEAVE("b") ASK("c"), NOPERM NOPERM HEARD("c"));
    until_told_hears(c, true);
    struct redlock_channel *d = add("redlock:leader:d");
    peer_expect(&second, ASK("d"));
    take_out(c);
    peer_serve(&second, LEAVE("c"), NOPERM NOPERM);
    until_told_hears(d, false);
    assert_int_equal(d->refused, 1);
    peer_say(&second, A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_int_equal(peer.told_listening, 1);
    /* One more than it asked for. */
    peer_say(&second, NOPERM);
    until_told(REDLOCK_LISTENING_NOT, "out of protocol");
}

/* R20 */
FRESH_TEST(out_of_protocol_it_ends) {
    static const char *const lies[] = {HEARD("b"), LEFT("a"), "+OK\r\n", HEARD("a") HEARD("a"), HEARD("a") NOPERM};
    listen_on_it();
    struct redlock_channel *a = add("redlock:leader:a");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        peer_serve(&second, ASK("a"), lies[i]);
        until_told(REDLOCK_LISTENING_NOT, "out of protocol");
        assert_int_equal(a->heard | a->refused, 0);
        greet_second();
    }
    peer_expect(&second, ASK("a"));
}

static void until_lost_after(int told) {
    PEER_UNTIL(&second, peer.told_listening > told);
    memory.armed = false;
    assert_int_equal(peer.told_listening, told + 1);
    assert_is(peer.listening, REDLOCK_LISTENING_NOT);
    assert_string_equal(peer.why_not, "no memory for a subscription");
    greet_second();
}

FRESH_TEST(without_memory_to_ask_it_comes_back) {
    listen_on_it();
    bool failed = true;
    for (int i = 1; failed; i++) {
        const int told = peer.told_listening;
        memory_fails_at(i);
        struct redlock_channel *a = add("redlock:leader:a");
        assert_int_equal(peer.told_listening, told);
        peer_turn(&peer);
        failed = memory.count >= memory.fails;
        if (failed) {
            until_lost_after(told);
        }
        memory.armed = false;
        peer_serve(&second, ASK("a"), HEARD("a"));
        until_told_hears(a, true);
        take_out(a);
        peer_serve(&second, LEAVE("a"), LEFT("a"));
    }
    assert_true(count_in_log("no memory for a subscription") > 0);
}

/* Nobody is told inside the call that found it. */
FRESH_TEST(without_memory_to_leave_it_comes_back) {
    listen_on_it();
    for (int i = 0; i < 5; i++) { /* too much for the room that the connection has */
        struct redlock_channel *channel = malloc(sizeof *channel + 1001);
        assert_non_null(channel);
        *channel = (struct redlock_channel){.next = channels.first, .heard = 1};
        memset(channel->name, 'a', 1000);
        channel->name[1000] = '\0';
        channels.first = channel;
    }
    redlock_node_hear(peer.node, &channels);
    const int told = peer.told_listening;
    memory_fails_at(1);
    while (channels.first != NULL) {
        take_out(channels.first);
    }
    assert_true(memory.count > 0);
    assert_int_equal(peer.told_listening, told);
    until_lost_after(told);
    assert_says_nothing();
}
