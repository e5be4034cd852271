/* Slots on a real server: who gets which, who stands at the gate, and what is told there. */
#include "queue_scripts.h"
#include "wire/slots.h"

#define GATE  FIRST "p"
#define OTHER SECOND "p"
#define LIMIT 10

TESTS_WITH(scripts_begin, scripts_end);

/* A request about slots of the limit 10. */
struct request {
    const char *token;
    unsigned permits, first, window; /* 0: 1, 0, LIMIT */
    const uint16_t *slots;           /* they are taken; NULL: not known */
    const char *gate;                /* our token there, of the id 9; NULL: not there */
    bool others, timed;
};

static struct redlock_answer answer;

static redlock_vote_kind ask_for(enum redlock_operation operation, struct request request) {
    static uint16_t room[128];
    struct redlock_message message = message_with(operation, request.token);
    const struct redlock_gate gate = {.token = request.gate,
                                      .token_size = request.gate ? strlen(request.gate) : 0,
                                      .channel = CHANNEL,
                                      .id = 9,
                                      .queue_ttl_ms = QUEUE_MS};
    struct redlock_target *target = redlock_target_make(room, "", 0, "door", 4);
    redlock_target_add_slots(target, request.permits == 0 ? 1 : request.permits, LIMIT);
    struct redlock_slots *slots = redlock_target_slots(target);
    slots->first = (uint16_t)request.first;
    slots->window = request.window == 0 ? LIMIT : (uint16_t)request.window;
    slots->taken = request.slots != NULL;
    slots->others = request.others;
    for (unsigned i = 0; request.slots && i < slots->permits; i++) {
        slots->numbers[i] = request.slots[i];
    }
    message.target = target;
    message.slots = true;
    message.by_source = true;
    message.timed = request.timed;
    message.gate = operation == REDLOCK_OP_ACQUIRE && request.gate ? &gate : NULL;
    answer = ask(&message);
    return answer.vote;
}
#define ASK(op, ...) ask_for(REDLOCK_OP_##op, (struct request){.token = __VA_ARGS__})
#define SLOTS(...)   ((const uint16_t[]){__VA_ARGS__})

static void assert_gave(const char *slots) {
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(answer.holder_size, strlen(slots));
    assert_memory_equal(answer.holder, slots, strlen(slots));
    assert_true(answer.clock.server_us != 0);
}

static void take(const char *token, unsigned permits, unsigned first, const char *slots) {
    assert_is(ASK(ACQUIRE, token, .permits = permits, .first = first), REDLOCK_VOTE_GRANTED);
    assert_gave(slots);
}

static void assert_denied_for(const char *words) {
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_says(words);
}

QUEUE_TEST(the_first_free_slot_from_there_on_is_given) {
    take(OURS, 1, 3, "3");
    assert_value("door#3", OURS);
    assert_in_range(server_pttl_ms(server, "door#3"), TTL_MS / 2, TTL_MS);
    take(THEIRS, 1, 3, "4");
    take(THEIRS, 3, 8, "8 9 0");
    take(OURS, 1, 8, "1");
    assert_int_equal(server_key_count(server), 6);
}

QUEUE_TEST(too_few_are_none) {
    take(OURS, 8, 0, "0 1 2 3 4 5 6 7");
    (void)ASK(ACQUIRE, THEIRS, 3);
    assert_denied_for("too few slots are free");
    assert_int_equal(server_key_count(server), 8);
    (void)ASK(ACQUIRE, THEIRS, 1, 0, 8);
    assert_denied_for("too few slots are free");
    take(THEIRS, 2, 5, "8 9");
}

/* A key of any kind is taken. */
QUEUE_TEST(a_slot_is_a_plain_lock) {
    assert_string_equal(server_ask(server, "SET", "door#0", THEIRS, "PX", "60000"), "OK");
    assert_string_equal(server_ask(server, "ZADD", "door#1", "1", "a"), "1");
    take(OURS, 1, 0, "2");
    assert_string_equal(server_ask(server, "SET", "door#2", THEIRS, "NX"), "(nil)");
    assert_is(ASK(RELEASE, OURS, 3, .slots = SLOTS(0, 1, 2)), REDLOCK_VOTE_DENIED);
    assert_value("door#0", THEIRS);
    assert_int_equal(server_key_count(server), 2);
}

/* It leaves as many free as the first in line wants. */
QUEUE_TEST(nobody_takes_the_slots_of_who_stands_at_the_gate) {
    take(THEIRS, 5, 0, "0 1 2 3 4");
    lock_as(GATE);
    (void)ASK(ACQUIRE, THEIRS, .permits = 6, .gate = GATE);
    (void)ASK(ACQUIRE, OURS);
    assert_denied_for("others wait at the gate");
    (void)ASK(ACQUIRE, THEIRS, .permits = 3, .first = 9, .window = 2, .gate = GATE);
    take(OURS, 1, 4, "5");
    take(OURS, 1, 4, "6");
    (void)ASK(ACQUIRE, OURS);
    assert_denied_for("others wait at the gate");
    lock_as(OTHER); /* he has not said yet how many he wants */
    take(OURS, 2, 0, "7 8");
    (void)ASK(ACQUIRE, OURS);
    assert_denied_for("others wait at the gate");
    assert_false(server_has_key(server, "door#9"));
}

/* The one who is served next, and those behind him. */
QUEUE_TEST(nobody_takes_the_slots_of_those_who_wait_in_line) {
    take(THEIRS, 6, 0, "0 1 2 3 4 5");
    queue_add(0xbb, OTHER, CHANNEL, STALE_MS);
    take(OURS, 1, 0, "6");
    queue_add(0xcc, THIRD "p", CHANNEL, STALE_MS);
    take(OURS, 1, 0, "7");
    (void)ASK(ACQUIRE, OURS);
    assert_denied_for("others wait at the gate");
    assert_int_equal(server_key_count(server), 8 + 2);
}

/* Of 10 slots, 2 are for others: of 5, so is 1. */
QUEUE_TEST(who_looks_at_some_leaves_the_share_of_others) {
    take(THEIRS, 5, 5, "5 6 7 8 9");
    queue_add(0xaa, GATE, CHANNEL, STALE_MS);
    queue_add(0xbb, OTHER, CHANNEL, STALE_MS);
    for (unsigned i = 0; i < 4; i++) {
        assert_is(ASK(ACQUIRE, OURS, .window = 5), REDLOCK_VOTE_GRANTED);
    }
    (void)ASK(ACQUIRE, OURS, .window = 5);
    assert_denied_for("others wait at the gate");
}

QUEUE_TEST(a_gate_is_a_gate_or_a_lock) {
    lock_as(FIRST);
    (void)ASK(ACQUIRE, OURS);
    assert_denied_for("its name is locked");
    lock_as("k123456789abcdef0123456789abcdef");
    (void)ASK(ACQUIRE, OURS);
    assert_denied_for("its name is locked");
    lock_as(GATE);
    (void)ASK(ACQUIRE, OURS, .gate = OTHER);
    assert_denied_for("somebody stands at the gate");
    unlock();
    assert_int_equal(server_key_count(server), 0);
}

/* A minority of nodes may not have its token. */
QUEUE_TEST(who_stands_at_the_gate_elsewhere_takes_here_too) {
    queue_add(0xbb, OTHER, CHANNEL, STALE_MS);
    assert_is(ASK(ACQUIRE, OURS, .permits = 10, .gate = GATE), REDLOCK_VOTE_GRANTED);
}

QUEUE_TEST(a_shared_lock_is_no_gate) {
    assert_string_equal(server_ask(server, "ZADD", "door", "1", "a"), "1");
    (void)ASK(ACQUIRE, OURS);
    assert_denied_for("its name is read, or no lock");
}

QUEUE_TEST(the_dead_close_no_gate) {
    take(THEIRS, 9, 0, "0 1 2 3 4 5 6 7 8");
    queue_add(0xaa, GATE, DEAF, STALE_MS);
    queue_add(0xbb, OTHER, CHANNEL, -1);
    take(OURS, 1, 0, "9");
}

QUEUE_TEST(who_stands_at_the_gate_is_told_what_gets_free) {
    take(OURS, 10, 0, "0 1 2 3 4 5 6 7 8 9");
    lock_as(GATE);
    (void)ASK(ACQUIRE, THEIRS, .gate = GATE);
    assert_denied_for("too few slots are free");
    assert_in_range(server_pttl_ms(server, WAITERS), QUEUE_MS / 2, QUEUE_MS);
    assert_is(ASK(RELEASE, OURS, .slots = SLOTS(7)), REDLOCK_VOTE_GRANTED);
    assert_string_equal(raw_read(&listener),
                        "message\n" CHANNEL "\n000000000900000000000000000008 0 0 0 " GATE " door\n");
    assert_is(ASK(ACQUIRE, THEIRS, .first = 7, .gate = GATE), REDLOCK_VOTE_GRANTED);
    assert_gave("7");
}

QUEUE_TEST(nobody_else_is_told) {
    take(OURS, 3, 0, "0 1 2");
    assert_is(ASK(RELEASE, OURS, .slots = SLOTS(0)), REDLOCK_VOTE_GRANTED);
    lock_as(GATE); /* he did not say how */
    assert_is(ASK(RELEASE, OURS, .slots = SLOTS(1)), REDLOCK_VOTE_GRANTED);
    assert_is(ASK(ACQUIRE, THEIRS, .gate = GATE), REDLOCK_VOTE_GRANTED);
    assert_is(ASK(RELEASE, OURS, .slots = SLOTS(9)), REDLOCK_VOTE_DENIED);
    lock_as(OTHER);
    assert_is(ASK(RELEASE, OURS, .slots = SLOTS(2)), REDLOCK_VOTE_GRANTED);
    const char *elsewhere = "1 other:channel " OTHER " 1 x";
    assert_string_equal(server_ask(server, "HSET", WAITERS, "slot", elsewhere), "0");
    assert_is(ASK(RELEASE, THEIRS, .slots = SLOTS(0)), REDLOCK_VOTE_GRANTED);
    assert_silence();
}

/* Where no answer told which slots it gave, all are looked at that it may have given. */
QUEUE_TEST(what_a_take_may_have_got_is_given_back) {
    take(OURS, 2, 8, "8 9");
    take(OURS, 1, 3, "3");
    take(THEIRS, 1, 0, "0");
    assert_is(ASK(RELEASE, OURS, .first = 8, .window = 3), REDLOCK_VOTE_GRANTED);
    assert_int_equal(server_key_count(server), 2);
    assert_is(ASK(RELEASE, OURS, .first = 8, .window = 3), REDLOCK_VOTE_DENIED);
    assert_value("door#3", OURS);
    assert_value("door#0", THEIRS);
}

QUEUE_TEST(the_others_are_given_back_and_these_kept) {
    take(OURS, 3, 4, "4 5 6");
    assert_is(ASK(RELEASE, OURS, 2, .slots = SLOTS(4, 6), .others = true), REDLOCK_VOTE_GRANTED);
    assert_value("door#4", OURS);
    assert_value("door#6", OURS);
    assert_int_equal(server_key_count(server), 2);
}

QUEUE_TEST(an_extension_needs_all_of_them) {
    take(OURS, 2, 4, "4 5");
    assert_string_equal(server_ask(server, "PEXPIRE", "door#5", "1000"), "1");
    assert_string_equal(server_ask(server, "PEXPIRE", "door#4", "9000000"), "1");
    assert_is(ASK(EXTEND, OURS, 2, .slots = SLOTS(4, 5)), REDLOCK_VOTE_GRANTED);
    assert_in_range(server_pttl_ms(server, "door#5"), TTL_MS / 2, TTL_MS);
    assert_true(server_pttl_ms(server, "door#4") > TTL_MS); /* never shorter */
    assert_is(ASK(EXTEND, OURS, 2, .slots = SLOTS(4, 6), .timed = true), REDLOCK_VOTE_DENIED);
    assert_says("the key is missing");
    assert_true(answer.clock.server_us != 0);
    assert_string_equal(server_ask(server, "SET", "door#5", THEIRS, "PX", "1000"), "OK");
    assert_string_equal(server_ask(server, "PEXPIRE", "door#4", "1000"), "1");
    assert_is(ASK(EXTEND, OURS, 2, .slots = SLOTS(4, 5)), REDLOCK_VOTE_DENIED);
    assert_says("held under another token");
    assert_true(server_pttl_ms(server, "door#4") <= 1000);
}

QUEUE_TEST(healing_sets_what_is_missing_and_nothing_else) {
    take(OURS, 1, 4, "4");
    assert_string_equal(server_ask(server, "PEXPIRE", "door#4", "1000"), "1");
    assert_is(ASK(HEAL, OURS, 2, .slots = SLOTS(4, 5)), REDLOCK_VOTE_GRANTED);
    assert_true(server_pttl_ms(server, "door#4") <= 1000);
    assert_in_range(server_pttl_ms(server, "door#5"), TTL_MS / 2, TTL_MS);
    take(THEIRS, 1, 6, "6");
    assert_is(ASK(HEAL, OURS, 2, .slots = SLOTS(6, 7)), REDLOCK_VOTE_DENIED);
    assert_value("door#6", THEIRS);
    assert_value("door#7", OURS);
}

/* The counter is that of the name; the first slot says whether they are ours. */
QUEUE_TEST(all_slots_have_one_counter) {
    static uint16_t room[64];
    take(OURS, 1, 4, "4");
    struct redlock_message message = message_of(REDLOCK_OP_FENCE, 7);
    struct redlock_target *target = redlock_target_make(room, "", 0, "door", 4);
    redlock_target_add_slots(target, 1, LIMIT);
    redlock_target_slots(target)->taken = true;
    redlock_target_slots(target)->numbers[0] = 4;
    message.target = target;
    message.slots = true;
    assert_granted(&message);
    assert_counter(7);
    redlock_target_slots(target)->numbers[0] = 5;
    message.fence = 8;
    assert_denied(&message, "missing");
}

/* An error in the middle takes nothing (R4). */
QUEUE_TEST(a_server_without_memory_gives_nothing) {
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "1"), "OK");
    assert_is(ASK(ACQUIRE, OURS), REDLOCK_VOTE_FAILED);
    assert_string_equal(server_ask(server, "CONFIG", "SET", "maxmemory", "0"), "OK");
    assert_int_equal(server_key_count(server), 0);
}
