/* Requests about slots, and what their replies name. */
#include "core/fence.h"
#include "kinds.h"
#include "test.h"
#include "wire/script.h"
#include "wire/slots.h"

#define TOKEN   "0123456789abcdef0123456789abcdef"
#define A_TOKEN "$32\r\n" TOKEN "\r\n"
#define A_TTL   "$5\r\n10000\r\n"
#define LOOKS   "$4\r\n1000\r\n$3\r\n990\r\n$2\r\n32\r\n"

static const struct redlock_fence_keys fence_keys = {.suffix = ":fence", .suffix_size = 6, .expiry_ms = 0};
static uint16_t room[REDLOCK_RESOURCE_SIZE_MAX];

/* Two of 1000; a take looks at 32 from 990 on. */
static struct redlock_slots *make(const char *key, size_t key_size) {
    struct redlock_target *target = redlock_target_make(room, "", 0, key, key_size);
    redlock_target_add_slots(target, 2, 1000);
    struct redlock_slots *slots = redlock_target_slots(target);
    slots->first = 990;
    slots->window = 32;
    return slots;
}

static struct redlock_message message_of(enum redlock_operation operation) {
    return (struct redlock_message){.operation = operation,
                                    .slots = true,
                                    .target = (struct redlock_target *)(void *)room,
                                    .token = TOKEN,
                                    .token_size = 32,
                                    .ttl_ms = 10000,
                                    .fence_keys = &fence_keys,
                                    .wait_suffix = ":w"};
}

static void assert_asks(const struct redlock_message *message, const struct redlock_script *script, unsigned kind,
                        unsigned count, const char *behind) {
    char expected[REDLOCK_WIRE_SIZE_MAX], bytes[REDLOCK_WIRE_SIZE_MAX];
    unsigned got;
    (void)snprintf(expected, sizeof expected, "*%u\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n%s", count, script->sha1, behind);
    const size_t size = redlock_wire_format(message, bytes, &got);
    assert_int_equal(got, kind);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(bytes, expected, size);
}

static void assert_bytes(struct redlock_message message, unsigned kind, unsigned count, const char *arguments) {
    char behind[512];
    (void)snprintf(behind, sizeof behind, "$1\r\n1\r\n$3\r\nres\r\n" A_TOKEN "%s", arguments);
    assert_asks(&message, &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_SLOTS], kind, count, behind);
}

TEST(a_take_says_where_it_looks_and_where_it_stands) {
    const struct redlock_gate gate = {
        .token = "abc", .token_size = 3, .channel = "redlock:1", .id = 77, .queue_ttl_ms = 15000};
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE);
    (void)make("res", 3);
    assert_bytes(message, TAKE, 15, "$1\r\nt\r\n" A_TTL LOOKS "$1\r\n2\r\n$2\r\n:w\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n");
    message.timed = true; /* it always is */
    message.gate = &gate;
    message.form.holder_query = REDLOCK_HOLDER_QUERY_ONCE;
    assert_bytes(message, TAKE, 15,
                 "$1\r\nt\r\n" A_TTL LOOKS "$1\r\n2\r\n$2\r\n:w\r\n$3\r\nabc\r\n$20\r\n0000000077 redlock:1\r\n"
                 "$5\r\n15000\r\n");
}

TEST(what_was_taken_is_kept_healed_and_given_back) {
    struct redlock_slots *slots = make("res", 3);
    slots->taken = true;
    slots->numbers[0] = 998;
    struct redlock_message message = message_of(REDLOCK_OP_EXTEND);
    assert_bytes(message, KEEP, 8, "$1\r\nk\r\n" A_TTL "$5\r\n998 0\r\n");
    message.timed = true;
    assert_bytes(message, KEEP_AT, 9, "$1\r\nk\r\n" A_TTL "$5\r\n998 0\r\n$1\r\n1\r\n");
    message = message_of(REDLOCK_OP_HEAL);
    assert_bytes(message, TAKE_AGAIN, 8, "$1\r\nh\r\n" A_TTL "$5\r\n998 0\r\n");
    message = message_of(REDLOCK_OP_RELEASE);
    message.handing = REDLOCK_HAND_NOBODY; /* it hands nothing to anybody */
    assert_bytes(message, GIVE, 8, "$1\r\ng\r\n$5\r\n998 0\r\n$2\r\n:w\r\n");
    slots->others = true;
    assert_bytes(message, GIVE, 11, "$1\r\ng\r\n$5\r\n998 0\r\n$2\r\n:w\r\n" LOOKS);
    slots->taken = slots->others = false; /* nobody knows which */
    assert_bytes(message, GIVE, 11, "$1\r\ng\r\n$0\r\n\r\n$2\r\n:w\r\n" LOOKS);
}

/* The first slot says whether they are ours; they have one counter. */
TEST(a_fencing_token_is_that_of_the_name) {
    struct redlock_slots *slots = make("res", 3);
    slots->taken = true;
    slots->numbers[0] = 7;
    struct redlock_message message = message_of(REDLOCK_OP_FENCE);
    message.fence = 42;
    assert_asks(&message, redlock_script_get(REDLOCK_SCRIPT_FENCE), FENCING, 8,
                "$1\r\n2\r\n$5\r\nres#7\r\n$9\r\nres:fence\r\n" A_TOKEN "$20\r\n00000000000000000042\r\n$1\r\n0\r\n");
}

TEST(the_key_stays_behind_its_slots) {
    struct redlock_slots *slots = make("res", 3);
    const struct redlock_target *target = (struct redlock_target *)(void *)room;
    slots->numbers[1] = UINT16_MAX;
    assert_string_equal(redlock_target_key(target), "res");
    assert_int_equal(redlock_target_key_size(target), 3);
    assert_int_equal(target->size, redlock_target_size(3) + redlock_target_slots_size(2));
    assert_int_equal(redlock_target_slots_size(0), 0);
}

TEST(the_longest_messages_fit) {
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_EXTEND, REDLOCK_OP_RELEASE,
                                                        REDLOCK_OP_HEAL, REDLOCK_OP_FENCE};
    char key[REDLOCK_RESOURCE_SIZE_MAX - 1 - REDLOCK_SLOT_DIGITS], channel[REDLOCK_CHANNEL_SIZE_MAX + 1] = "";
    char token[REDLOCK_TOKEN_SIZE_MAX], bytes[REDLOCK_WIRE_SIZE_MAX];
    unsigned kind;
    memset(key, 'k', sizeof key);
    memset(channel, 'c', sizeof channel - 1);
    memset(token, 't', sizeof token);
    const struct redlock_gate gate = {.token = token, .token_size = sizeof token, .channel = channel, .id = UINT32_MAX};
    struct redlock_target *target = redlock_target_make(room, "", 0, key, sizeof key);
    redlock_target_add_slots(target, REDLOCK_PERMITS_MAX, REDLOCK_LIMIT_MAX);
    struct redlock_slots *slots = redlock_target_slots(target);
    for (unsigned i = 0; i < REDLOCK_PERMITS_MAX; i++) {
        slots->numbers[i] = REDLOCK_LIMIT_MAX - 1;
    }
    slots->taken = slots->others = true;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct redlock_message message = message_of(operations[i]);
        message.by_source = message.timed = true;
        message.token = token;
        message.token_size = sizeof token;
        message.fence = REDLOCK_FENCE_MAX;
        message.gate = operations[i] == REDLOCK_OP_ACQUIRE ? &gate : NULL;
        assert_in_range(redlock_wire_format(&message, bytes, &kind), sizeof key, sizeof bytes);
    }
}

static bool reads(const char *text, unsigned first, unsigned second) {
    uint16_t numbers[2] = {9999, 9999};
    const bool read = redlock_slots_read(make("res", 3), text, strlen(text), numbers);
    return read && numbers[0] == first && numbers[1] == second;
}

/* R20: slots that were not asked for are no vote. */
TEST(only_slots_that_were_looked_at_are_read) {
    assert_true(reads("990 991", 990, 991));
    assert_true(reads("999 0", 999, 0));
    assert_true(reads("3 21", 3, 21));
    static const char *const odd[] =
        LIST("", "990", "990 991 992", "990 22", "989 990", "991 990", "990 990", "990 1000", "990  991", " 990 991",
             "990 991 ", "990,991", "00990 991", "-1 990", "x 990");
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        uint16_t numbers[2];
        if (redlock_slots_read(make("res", 3), odd[i], strlen(odd[i]), numbers)) {
            fail_msg("'%s' is read", odd[i]);
        }
    }
}
