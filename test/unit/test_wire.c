/* The bytes of each request. */
#include "core/fence.h"
#include "kinds.h"
#include "test.h"
#include "wire/script.h"

#define TOKEN        "0123456789abcdef0123456789abcdef"
#define FENCE        UINT64_C(1795167037123456789)
#define FENCE_DIGITS "01795167037123456789"

static const struct redlock_fence_keys fence_keys = {.suffix = ":fence", .suffix_size = 6, .expiry_ms = 86400000};

static void assert_bytes(const struct redlock_message *message, const char *expected) {
    char buffer[REDLOCK_WIRE_SIZE_MAX];
    unsigned kind;
    size_t size = redlock_wire_format(message, buffer, &kind);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(buffer, expected, size);
}

static struct redlock_message message_of(enum redlock_operation operation) {
    static uint16_t room[16];
    const struct redlock_target *res = redlock_target_make(room, "", 0, "res", 3);
    return (struct redlock_message){
        .operation = operation, .target = res, .token = TOKEN, .token_size = 32, .ttl_ms = 10000, .wait_suffix = ":w"};
}

TEST(acquire_is_set_nx_px) {
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE);
    assert_bytes(&message,
                 "*6\r\n$3\r\nSET\r\n$3\r\nres\r\n$32\r\n" TOKEN "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n");
    message.ttl_ms = REDLOCK_TTL_MS_MAX;
    assert_bytes(&message,
                 "*6\r\n$3\r\nSET\r\n$3\r\nres\r\n$32\r\n" TOKEN "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$10\r\n2147483647\r\n");
}

/* EVALSHA and EVAL of the script: `keys` are their number and they themselves. */
static void assert_script(struct redlock_message message, enum redlock_script_id id, const char *count,
                          const char *keys, const char *arguments) {
    const struct redlock_script *script = redlock_script_get(id);
    char expected[REDLOCK_WIRE_SIZE_MAX];
    (void)snprintf(expected, sizeof expected, "*%s\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n%s%s", count, script->sha1, keys,
                   arguments);
    assert_bytes(&message, expected);
    message.by_source = true;
    (void)snprintf(expected, sizeof expected, "*%s\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n%s%s", count, script->source_size,
                   script->source, keys, arguments);
    assert_bytes(&message, expected);
}

#define ONE_KEY  "$1\r\n1\r\n$3\r\nres\r\n"
#define TWO_KEYS "$1\r\n2\r\n$3\r\nres\r\n$9\r\nres:fence\r\n"
#define A_TOKEN  "$32\r\n" TOKEN "\r\n"
#define A_TTL    "$5\r\n10000\r\n"
#define A_FENCE  "$20\r\n" FENCE_DIGITS "\r\n"

TEST(the_others_are_scripts_by_sha_or_source) {
    assert_script(message_of(REDLOCK_OP_RELEASE), REDLOCK_SCRIPT_RELEASE, "7", ONE_KEY,
                  A_TOKEN "$2\r\n:w\r\n$1\r\n0\r\n");
    assert_script(message_of(REDLOCK_OP_EXTEND), REDLOCK_SCRIPT_EXTEND, "6", ONE_KEY, A_TOKEN A_TTL);
    assert_script(message_of(REDLOCK_OP_INSPECT), REDLOCK_SCRIPT_INSPECT, "5", ONE_KEY, "$2\r\n:w\r\n");
}

TEST(a_fence_and_a_time_are_asked_of_scripts) {
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE);
    message.fence_keys = &fence_keys;
    message.timed = true;
    assert_script(message, REDLOCK_SCRIPT_ACQUIRE, "9", ONE_KEY, A_TOKEN A_TTL "$0\r\n\r\n$1\r\n0\r\n$1\r\n1\r\n");
    message.fence = FENCE;
    assert_script(message, REDLOCK_SCRIPT_ACQUIRE, "10", TWO_KEYS,
                  A_TOKEN A_TTL A_FENCE "$8\r\n86400000\r\n$1\r\n1\r\n");
    message.timed = false;
    assert_script(message, REDLOCK_SCRIPT_ACQUIRE, "10", TWO_KEYS,
                  A_TOKEN A_TTL A_FENCE "$8\r\n86400000\r\n$1\r\n0\r\n");
    message = message_of(REDLOCK_OP_EXTEND);
    message.timed = true;
    assert_script(message, REDLOCK_SCRIPT_EXTEND, "7", ONE_KEY, A_TOKEN A_TTL "$1\r\n1\r\n");
    message = message_of(REDLOCK_OP_FENCE);
    message.fence = FENCE;
    message.fence_keys = &(struct redlock_fence_keys){.suffix = ":fence", .suffix_size = 6};
    assert_script(message, REDLOCK_SCRIPT_FENCE, "8", TWO_KEYS, A_TOKEN A_FENCE "$1\r\n0\r\n");
}

TEST(the_release_of_a_try_looks_for_nobody_and_may_be_a_command) {
    struct redlock_message message = message_of(REDLOCK_OP_RELEASE);
    message.by_try = true;
    assert_script(message, REDLOCK_SCRIPT_RELEASE, "6", ONE_KEY, A_TOKEN "$2\r\n:w\r\n");
    message.wait_suffix = ":wait"; /* the script knows it */
    assert_script(message, REDLOCK_SCRIPT_RELEASE, "5", ONE_KEY, A_TOKEN);
    message.form.deleting = REDLOCK_DELETING_DELEX;
    assert_bytes(&message, "*4\r\n$5\r\nDELEX\r\n$3\r\nres\r\n$4\r\nIFEQ\r\n" A_TOKEN);
    message.form.deleting = REDLOCK_DELETING_DELIFEQ;
    assert_bytes(&message, "*3\r\n$7\r\nDELIFEQ\r\n$3\r\nres\r\n" A_TOKEN);
}

TEST(a_release_may_keep_the_lock_from_the_queue) {
    struct redlock_message message = message_of(REDLOCK_OP_RELEASE);
    message.handing = REDLOCK_HAND_NOBODY;
    assert_script(message, REDLOCK_SCRIPT_RELEASE, "7", ONE_KEY, A_TOKEN "$2\r\n:w\r\n$1\r\n1\r\n");
    message.handing = REDLOCK_HAND_LATER;
    assert_script(message, REDLOCK_SCRIPT_RELEASE, "7", ONE_KEY, A_TOKEN "$2\r\n:w\r\n$2\r\n50\r\n");
}

/* A seal is filled in for each node. */
#define ID(number) "$30\r\n" number "00000000000000000000\r\n"

TEST(a_place_in_a_queue_is_asked_of_a_script) {
    static const char keys[] = "$1\r\n3\r\n$3\r\nres\r\n$5\r\nres:w\r\n$7\r\nres:wer\r\n";
    struct redlock_message message = message_of(REDLOCK_OP_WAIT);
    struct redlock_place place = {.ticket = UINT64_C(1795167037123456),
                                  .stale_ms = 7500,
                                  .queue_ttl_ms = 15000,
                                  .channel = "redlock:c",
                                  .id = UINT32_MAX,
                                  .takes = true};
    message.round = 7;
    message.place = &place;
    assert_script(message, REDLOCK_SCRIPT_WAIT, "15", keys,
                  A_TOKEN "$16\r\n1795167037123456\r\n$1\r\n7\r\n" A_TTL "$4\r\n7500\r\n$5\r\n15000\r\n"
                          "$9\r\nredlock:c\r\n" ID("4294967295") "$1\r\n1\r\n");
    place = (struct redlock_place){.channel = "c"};
    assert_script(message, REDLOCK_SCRIPT_WAIT, "15", keys,
                  A_TOKEN "$1\r\n0\r\n$1\r\n7\r\n" A_TTL
                          "$1\r\n0\r\n$1\r\n0\r\n$1\r\nc\r\n" ID("0000000000") "$1\r\n0\r\n");
}

static const struct redlock_target *announced(void) {
    static uint16_t room[16];
    struct redlock_target *target = redlock_target_make(room, "", 0, "res", 3);
    target->announced = true;
    return target;
}

/* The rest of the bytes is the same for all. */
TEST(each_node_gets_its_own_seal) {
    static const uint64_t seals[] = {7, UINT64_MAX};
    static const char *const digits[] = {"00000000000000000007", "18446744073709551615"};
    const struct redlock_place place = {.channel = "c", .id = 5, .seals = seals};
    char bytes[REDLOCK_WIRE_SIZE_MAX], wanted[64];
    unsigned kind;
    for (unsigned i = 0; i < 4; i++) {
        struct redlock_message message = message_of(REDLOCK_OP_WAIT);
        message.target = i / 2 == 1 ? announced() : message.target;
        message.place = &place;
        const size_t size = redlock_wire_format(&message, bytes, &kind);
        redlock_wire_seal(&message, 1 - i % 2, bytes, size); /* another one was there */
        redlock_wire_seal(&message, i % 2, bytes, size);
        const int tail = snprintf(wanted, sizeof wanted, "$30\r\n0000000005%s\r\n$1\r\n0\r\n%s", digits[i % 2],
                                  i / 2 == 1 ? "$1\r\n1\r\n" : "");
        assert_true(size > (size_t)tail);
        assert_memory_equal(bytes + size - (size_t)tail, wanted, (size_t)tail);
    }
}

TEST(an_election_asks_to_tell_observers) {
    struct redlock_message message = message_of(REDLOCK_OP_RELEASE);
    message.target = announced();
    assert_script(message, REDLOCK_SCRIPT_RELEASE, "8", ONE_KEY, A_TOKEN "$2\r\n:w\r\n$1\r\n0\r\n$1\r\n1\r\n");
    message.handing = REDLOCK_HAND_NOBODY;
    assert_script(message, REDLOCK_SCRIPT_RELEASE, "8", ONE_KEY, A_TOKEN "$2\r\n:w\r\n$1\r\n1\r\n$1\r\n1\r\n");
    message = message_of(REDLOCK_OP_WAIT);
    message.target = announced();
    message.place = &(struct redlock_place){.channel = "c"};
    assert_script(message, REDLOCK_SCRIPT_WAIT, "16", "$1\r\n3\r\n$3\r\nres\r\n$5\r\nres:w\r\n$7\r\nres:wer\r\n",
                  A_TOKEN "$1\r\n0\r\n$1\r\n0\r\n" A_TTL
                          "$1\r\n0\r\n$1\r\n0\r\n$1\r\nc\r\n" ID("0000000000") "$1\r\n0\r\n$1\r\n1\r\n");
    /* No other request knows of observers. */
    message = message_of(REDLOCK_OP_EXTEND);
    message.target = announced();
    assert_script(message, REDLOCK_SCRIPT_EXTEND, "6", ONE_KEY, A_TOKEN A_TTL);
}

/* A script that no connection loads, so it may be sent by source. */
static void assert_share(struct redlock_message message, const char *count, const char *keys, const char *arguments) {
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_SHARE];
    char expected[REDLOCK_WIRE_SIZE_MAX];
    message.shared = true;
    (void)snprintf(expected, sizeof expected, "*%s\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n%s%s", count, script->sha1, keys,
                   arguments);
    assert_bytes(&message, expected);
    message.by_source = true;
    (void)snprintf(expected, sizeof expected, "*%s\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n%s%s", count, script->source_size,
                   script->source, keys, arguments);
    assert_bytes(&message, expected);
}

TEST(who_reads_sends_another_script) {
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE);
    assert_share(message, "9", ONE_KEY, A_TOKEN A_TTL "$1\r\nt\r\n$2\r\n:w\r\n$1\r\n0\r\n");
    message.timed = true;
    assert_share(message, "9", ONE_KEY, A_TOKEN A_TTL "$1\r\nt\r\n$2\r\n:w\r\n$1\r\n1\r\n");
    message.fence = FENCE;
    message.fence_keys = &fence_keys;
    assert_share(message, "12", TWO_KEYS,
                 A_TOKEN A_TTL "$1\r\nt\r\n$2\r\n:w\r\n$1\r\n1\r\n" A_FENCE "$8\r\n86400000\r\n");
    message.operation = REDLOCK_OP_EXTEND;
    assert_share(message, "9", ONE_KEY, A_TOKEN A_TTL "$1\r\nk\r\n$2\r\n:w\r\n$1\r\n1\r\n");
    message.handing = REDLOCK_HAND_NOBODY;
    message.timed = false;
    assert_share(message, "9", ONE_KEY, A_TOKEN A_TTL "$1\r\nc\r\n$2\r\n:w\r\n$1\r\n0\r\n");
    message.operation = REDLOCK_OP_HEAL;
    message.timed = true;
    assert_share(message, "9", ONE_KEY, A_TOKEN A_TTL "$1\r\nh\r\n$2\r\n:w\r\n$1\r\n0\r\n");
    /* The others are the same. */
    message = message_of(REDLOCK_OP_RELEASE);
    message.shared = true;
    assert_script(message, REDLOCK_SCRIPT_RELEASE, "7", ONE_KEY, A_TOKEN "$2\r\n:w\r\n$1\r\n0\r\n");
}

TEST(healing_is_the_same_set_and_time_is_time) {
    struct redlock_message message = message_of(REDLOCK_OP_HEAL);
    assert_bytes(&message, "*6\r\n$3\r\nSET\r\n$3\r\nres\r\n" A_TOKEN "$2\r\nNX\r\n$2\r\nPX\r\n" A_TTL);
    assert_bytes(&(struct redlock_message){.operation = REDLOCK_OP_TIME}, "*1\r\n$4\r\nTIME\r\n");
}

TEST(an_acquire_may_ask_for_the_holder) {
#define HOLDER_QUERY "*7\r\n$3\r\nSET\r\n$3\r\nres\r\n" A_TOKEN "$2\r\nNX\r\n$2\r\nPX\r\n" A_TTL "$3\r\nGET\r\n"
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE);
    message.form.holder_query = REDLOCK_HOLDER_QUERY_ONCE;
    assert_bytes(&message, HOLDER_QUERY);
    message.form.holder_query = REDLOCK_HOLDER_QUERY_TWICE;
    assert_bytes(&message, HOLDER_QUERY HOLDER_QUERY);
}

static unsigned kind_of(const struct redlock_message *message) {
    char buffer[REDLOCK_WIRE_SIZE_MAX];
    unsigned kind;
    (void)redlock_wire_format(message, buffer, &kind);
    return kind;
}

static unsigned kind_as(const struct redlock_message *message, enum redlock_holder_query holder_query) {
    struct redlock_message formed = *message;
    formed.form.holder_query = (uint8_t)holder_query;
    return kind_of(&formed);
}

TEST(the_kind_is_the_messages_form) {
    const struct redlock_place place = {.channel = "c"};
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE);
    message.fence_keys = &fence_keys;
    message.place = &place;
    assert_int_equal(kind_of(&message), SET);
    assert_int_equal(kind_as(&message, REDLOCK_HOLDER_QUERY_ONCE), NAMED);
    assert_int_equal(kind_as(&message, REDLOCK_HOLDER_QUERY_TWICE), NAMED_TWICE);
    message.by_source = true; /* after a refusal */
    assert_int_equal(kind_as(&message, REDLOCK_HOLDER_QUERY_ONCE), SET);
    message.by_source = false;
    message.timed = true;
    assert_int_equal(kind_of(&message), TIMED);
    assert_int_equal(kind_as(&message, REDLOCK_HOLDER_QUERY_ONCE), TIMED); /* no script */
    message.fence = 1;
    assert_int_equal(kind_of(&message), BOTH);
    message.timed = false;
    assert_int_equal(kind_of(&message), FENCED);
    message.operation = REDLOCK_OP_EXTEND; /* of a lease with a fencing token */
    assert_int_equal(kind_of(&message), EXTEND);
    message.timed = true;
    assert_int_equal(kind_of(&message), EXTENDED);
    for (unsigned operation = REDLOCK_OP_RELEASE; operation <= REDLOCK_OP_WAIT; operation++) {
        message.operation = (enum redlock_operation)operation;
        assert_int_equal(kind_of(&message), operation);
    }
    message = message_of(REDLOCK_OP_RELEASE);
    message.by_try = true;
    assert_int_equal(kind_of(&message), RELEASE);
    message.form.deleting = REDLOCK_DELETING_DELEX;
    assert_int_equal(kind_of(&message), DELETING);
    message = message_of(REDLOCK_OP_ACQUIRE);
    message.shared = true;
    assert_int_equal(kind_as(&message, REDLOCK_HOLDER_QUERY_ONCE), READ);
    message.timed = true;
    assert_int_equal(kind_of(&message), READ_TIMED);
    message.fence = 1;
    message.fence_keys = &fence_keys;
    assert_int_equal(kind_of(&message), READ_BOTH);
    message.timed = false;
    assert_int_equal(kind_of(&message), READ_FENCED);
    message.operation = REDLOCK_OP_HEAL;
    assert_int_equal(kind_of(&message), READ_AGAIN);
    message.operation = REDLOCK_OP_EXTEND;
    assert_int_equal(kind_of(&message), READ_ON);
    message.timed = true;
    assert_int_equal(kind_of(&message), READ_ON_AT);
    message.operation = REDLOCK_OP_RELEASE;
    assert_int_equal(kind_of(&message), RELEASE);
    assert_is(redlock_wire_operation(BOTH), REDLOCK_OP_ACQUIRE);
    assert_is(redlock_wire_operation(READ_BOTH), REDLOCK_OP_ACQUIRE);
    assert_is(redlock_wire_operation(NAMED_TWICE), REDLOCK_OP_ACQUIRE);
    assert_is(redlock_wire_operation(EXTENDED), REDLOCK_OP_EXTEND);
    assert_is(redlock_wire_operation(DELETING), REDLOCK_OP_RELEASE);
    assert_is(redlock_wire_operation(REDLOCK_OP_LIST | REDLOCK_KIND_TWICE), REDLOCK_OP_LIST);
}

TEST(the_longest_messages_fit) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_FENCE, REDLOCK_OP_EXTEND,
                                                        REDLOCK_OP_RELEASE, REDLOCK_OP_WAIT};
    char suffix[REDLOCK_WAIT_SUFFIX_SIZE_MAX + 1] = "", channel[REDLOCK_CHANNEL_SIZE_MAX + 1] = "";
    char key[REDLOCK_RESOURCE_SIZE_MAX], buffer[REDLOCK_WIRE_SIZE_MAX];
    unsigned kind;
    const struct redlock_fence_keys longest = {
        .suffix = key, .suffix_size = REDLOCK_FENCE_SUFFIX_SIZE_MAX, .expiry_ms = INT64_MAX};
    const struct redlock_place place = {.ticket = REDLOCK_TICKET_MAX,
                                        .stale_ms = INT64_MAX,
                                        .queue_ttl_ms = INT64_MAX,
                                        .channel = channel,
                                        .id = UINT32_MAX,
                                        .takes = true};
    uint16_t room[REDLOCK_RESOURCE_SIZE_MAX];
    memset(key, '\n', sizeof key);
    struct redlock_target *target = redlock_target_make(room, "", 0, key, sizeof key);
    target->announced = true;
    struct redlock_message message = {.by_source = true,
                                      .target = target,
                                      .token = key,
                                      .token_size = REDLOCK_TOKEN_SIZE_MAX,
                                      .ttl_ms = REDLOCK_TTL_MS_MAX,
                                      .timed = true,
                                      .fence = REDLOCK_FENCE_MAX,
                                      .fence_keys = &longest,
                                      .wait_suffix = suffix,
                                      .place = &place,
                                      .round = UINT32_MAX};
    memset(suffix, 's', sizeof suffix - 1);
    memset(channel, 'c', sizeof channel - 1);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        message.operation = operations[i];
        assert_in_range(redlock_wire_format(&message, buffer, &kind), sizeof key, sizeof buffer);
    }
    message.operation = REDLOCK_OP_ACQUIRE;
    message.form.holder_query = REDLOCK_HOLDER_QUERY_TWICE;
    assert_in_range(redlock_wire_format(&message, buffer, &kind), 2 * sizeof key, sizeof buffer);
}
