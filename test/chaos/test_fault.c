/* One fault as a line and as a phrase. Reading is strict, and reads back what was written. */
#include <inttypes.h>

#include "faults/fault.h"
#include "test.h"

static struct chaos_fault parse(const char *line) {
    struct chaos_fault fault;
    struct chaos_error error = {""};
    if (!chaos_fault_parse(line, 5, 20, &fault, &error)) {
        fail_msg("%s: %s", line, error.text);
    }
    return fault;
}

static void refuse(const char *line, const char *sentence) {
    struct chaos_fault fault = {.kind = CHAOS_FAULT_OOM, .at_ms = 77};
    struct chaos_error error = {""};
    assert_false(chaos_fault_parse(line, 5, 20, &fault, &error));
    if (strstr(error.text, sentence) == NULL) {
        fail_msg("%s: said '%s', not '%s'", line, error.text, sentence);
    }
    assert_int_equal(fault.at_ms, 77);
}

TEST(lines_are_read) {
    struct chaos_fault fault = parse("at=2s for=3s fault=pause nodes=1,2,3");
    assert_int_equal(fault.kind, CHAOS_FAULT_PAUSE);
    assert_int_equal(fault.at_ms, 2000);
    assert_int_equal(fault.for_ms, 3000);
    assert_int_equal(fault.nodes, 7);
    assert_int_equal(fault.clients, 0);
    fault = parse("  clients=4-9\tnodes=2 fault=partition for=1500ms\r");
    assert_int_equal(fault.clients, 0x1f8);
    assert_int_equal(fault.nodes, 2);
    assert_int_equal(fault.at_ms, 0);
    fault = parse("fault=cut");
    assert_int_equal(fault.clients, 0xfffff);
    assert_int_equal(fault.nodes, 31);
    assert_int_equal(parse("fault=clock-jump amount=-3s nodes=3").amount, -3000);
    assert_int_equal(parse("fault=clock-skew for=1m amount=-50000ppm").amount, -50000);
    assert_int_equal(parse("fault=bandwidth for=1h amount=2000B/s").amount, 2000);
    assert_int_equal(parse("fault=client-kill clients=all for=2m").for_ms, 120000);
    assert_int_equal(parse("fault=flushall nodes=1-2,2,5 at=0").nodes, 19);
}

TEST(lines_are_refused) {
    refuse("", "fault= is missing; there are: kill, restart-empty");
    refuse("fault=pauze for=1s", "unknown fault 'pauze'; there are: kill, ");
    refuse("fault=pauze for=1s", "client-kill");
    refuse("fault=pause", "pause needs for=");
    refuse("fault=flushall for=1s", "flushall takes no for=");
    refuse("fault=slow", "slow needs amount=, such as amount=500ms");
    refuse("fault=pause for=1s amount=1s", "pause takes no amount=");
    refuse("fault=pause for=0", "for=0; a time above 0");
    refuse("fault=pause for=1", "for=1; a time above 0");
    refuse("fault=pause for=-1s", "for=-1s; a time above 0");
    refuse("fault=pause for=1s at=-1s", "at=-1s; a time of up to 1000h");
    refuse("fault=pause for=1001h", "of up to 1000h");
    refuse("fault=pause for=99999999999999999999s", "of up to 1000h");
    refuse("fault=pause for=1s for=2s", "for= is given twice");
    refuse("fault=pause for=1s now", "cannot understand 'now'; a fault is told by at=");
    refuse("fault=pause form=1s", "cannot understand 'form=1s'");
    refuse("fault=pause for=1s clients=1", "pause takes no clients=: it hits nodes");
    refuse("fault=client-kill for=1s nodes=1", "client-kill takes no nodes=: it hits clients");
    refuse("fault=pause for=1s nodes=6", "nodes=6: nodes are numbered from 1 to 5");
    refuse("fault=pause for=1s nodes=0", "nodes=0: nodes are numbered");
    refuse("fault=pause for=1s nodes=3-2", "a range begins with the smaller one");
    refuse("fault=pause for=1s nodes=", "cannot understand nodes=;");
    refuse("fault=pause for=1s nodes=1,", "cannot understand nodes=1,;");
    refuse("fault=pause for=1s nodes=1-", "cannot understand nodes=1-;");
    refuse("fault=pause for=1s nodes=-1", "cannot understand nodes=-1;");
    refuse("fault=pause for=1s nodes=1;2", "cannot understand nodes=1;2;");
    refuse("fault=pause for=1s nodes=4294967297", "cannot understand nodes=4294967297");
    refuse("fault=cut clients=1-21", "clients=1-21: clients are numbered from 1 to 20");
    refuse("fault=slow amount=-1s", "amount=-1s; a time above 0");
    refuse("fault=slow amount=0s", "amount=0s; a time above 0");
    refuse("fault=clock-jump amount=0s", "a time but 0");
    refuse("fault=clock-jump amount=--3s", "amount=--3s");
    refuse("fault=clock-skew for=1s amount=5s", "parts per million");
    refuse("fault=clock-skew for=1s amount=1000001ppm", "up to 1000000");
    refuse("fault=bandwidth for=1s amount=-5B/s", "bytes a second above 0");
    refuse("fault=bandwidth for=1s amount=5", "bytes a second above 0");
    char line[600];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    refuse(line, "line of 599 bytes is too long");
}

/* No error overruns its buffer. */
TEST(errors_fit) {
    struct {
        struct chaos_error error;
        char behind;
    } room;
    for (int length = 0; length < 1200; length++) {
        room.behind = '!';
        assert_false(chaos_fail(&room.error, "%0*d", length, 1));
        size_t said = strlen(room.error.text), wanted = length == 0 ? 1 : (size_t)length;
        assert_int_equal(said, wanted < sizeof room.error.text ? wanted : sizeof room.error.text - 1);
        assert_int_equal(room.behind, '!');
    }
    assert_false(chaos_fail(NULL, "%s", "nobody asks"));
}

static int64_t an_amount(enum chaos_amount amount, uint64_t random) {
    switch (amount) {
    case CHAOS_AMOUNT_NONE:
        return 0;
    case CHAOS_AMOUNT_TIME:
        return (int64_t)(random % 5000000) + 1;
    case CHAOS_AMOUNT_PPM:
        return (int64_t)(random % 2 == 0 ? random % 200000 + 1 : 0) - (int64_t)(random % 2 == 1 ? random % 200000 : 0);
    case CHAOS_AMOUNT_NODES:
        return 0; /* the nodes say it */
    default:
        return (int64_t)(random % 100000) + 1;
    }
}

TEST(what_is_written_is_read_back) {
    uint64_t random = 1;
    for (int i = 0; i < 50000; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t bits = random >> 7;
        size_t nodes = (size_t)(bits % CHAOS_NODES_MAX) + 1, clients = (size_t)(bits / 64 % CHAOS_CLIENTS_MAX) + 1;
        struct chaos_fault fault = {.kind = (enum chaos_fault_kind)(i % CHAOS_FAULT_KINDS),
                                    .at_ms = (int64_t)(bits % 7200001)};
        const struct chaos_fault_about *about = chaos_fault_about(fault.kind);
        uint64_t mask = clients == 64 ? UINT64_MAX : (UINT64_C(1) << clients) - 1;
        if (about->target != CHAOS_TARGET_CLIENTS) {
            uint32_t set = (uint32_t)(random >> 33) & (uint32_t)((UINT64_C(1) << nodes) - 1);
            fault.nodes = set == 0 ? 1 : set;
        }
        if (about->target != CHAOS_TARGET_NODES) {
            uint64_t set = (random ^ random >> 29) & mask;
            fault.clients = set == 0 ? 1 : set;
        }
        fault.for_ms = about->lasts ? (int64_t)(bits % 3600000) + 1 : 0;
        fault.amount = about->amount == CHAOS_AMOUNT_NODES ? (int64_t)chaos_count_bits(fault.nodes) / 2 + 1
                                                           : an_amount(about->amount, bits);
        struct chaos_error error = {""};
        char line[CHAOS_FAULT_LINE_MAX], phrase[CHAOS_FAULT_LINE_MAX];
        struct chaos_fault again;
        memset(&again, 0x55, sizeof again);
        assert_ptr_equal(chaos_fault_format(&fault, nodes, clients, true, line, sizeof line), line);
        if (!chaos_fault_parse(line, nodes, clients, &again, &error)) {
            fail_msg("%s: %s", line, error.text);
        }
        assert_int_equal(again.kind, fault.kind);
        assert_int_equal(again.nodes, fault.nodes);
        assert_true(again.clients == fault.clients);
        assert_int_equal(again.at_ms, fault.at_ms);
        assert_int_equal(again.for_ms, fault.for_ms);
        assert_int_equal(again.amount, fault.amount);
        chaos_fault_format(&fault, nodes, clients, false, line, sizeof line);
        assert_lacks(line, "at=");
        chaos_fault_describe(&fault, nodes, clients, phrase, sizeof phrase);
        assert_true(strlen(phrase) > 10 && strlen(phrase) < sizeof phrase - 1);
        assert_null(strpbrk(phrase, "@&#<>"));
    }
}

TEST(lines_are_short) {
    char line[CHAOS_FAULT_LINE_MAX];
    struct chaos_fault fault = parse("at=90s for=1500ms fault=partition nodes=all clients=1,2,3,5-9");
    assert_string_equal(chaos_fault_format(&fault, 5, 20, true, line, sizeof line),
                        "at=90s for=1500ms fault=partition nodes=all clients=1,2,3,5-9");
    fault = parse("at=2h fault=clock-jump amount=-2m");
    assert_string_equal(chaos_fault_format(&fault, 5, 20, true, line, sizeof line),
                        "at=2h fault=clock-jump nodes=all amount=-2m");
    /* A short buffer is not overrun. */
    memset(line, '!', sizeof line);
    chaos_fault_format(&fault, 5, 20, true, line, 10);
    assert_string_equal(line, "at=2h fau");
    assert_int_equal(line[10], '!');
}

static void phrase_is(const char *line, const char *expected) {
    char phrase[CHAOS_FAULT_LINE_MAX];
    struct chaos_fault fault = parse(line);
    assert_string_equal(chaos_fault_describe(&fault, 5, 20, phrase, sizeof phrase), expected);
}

TEST(phrases_are_for_people) {
    phrase_is("fault=pause for=1s nodes=1,2,3", "nodes 1, 2 and 3 paused");
    phrase_is("fault=kill for=1s nodes=4", "node 4 killed");
    phrase_is("fault=drop for=1s nodes=4,5", "packets from and to nodes 4 and 5 lost");
    phrase_is("fault=kill for=1s nodes=1-4", "nodes 1 to 4 killed");
    phrase_is("fault=kill for=1s", "all nodes killed");
    phrase_is("fault=partition for=1s clients=4-9 nodes=2", "clients 4 to 9 cut off from node 2");
    phrase_is("fault=partition for=1s clients=1,4-9,20 nodes=2,3",
              "clients 1, 4 to 9 and 20 cut off from nodes 2 and 3");
    phrase_is("fault=partition for=1s clients=1,4-9", "clients 1 and 4 to 9 cut off from all nodes");
    phrase_is("fault=lose-requests for=1s nodes=2", "requests of all clients to node 2 held back");
    phrase_is("fault=lose-replies for=1s nodes=2 clients=7", "replies of node 2 to client 7 held back");
    phrase_is("fault=silent for=1s nodes=2 clients=7", "connections of client 7 to node 2 silent");
    phrase_is("fault=clock-jump nodes=3 amount=5s", "node 3's clock steps by 5 s");
    phrase_is("fault=clock-jump nodes=2,3 amount=-1500ms", "the clocks of nodes 2 and 3 step back by 1.5 s");
    phrase_is("fault=clock-skew for=1s nodes=3 amount=-700ppm", "node 3's clock runs 700 ppm slow");
    phrase_is("fault=clock-skew for=1s amount=700ppm", "the clocks of all nodes run 700 ppm fast");
    phrase_is("fault=script-flush nodes=1", "node 1 without its scripts");
    phrase_is("fault=script-flush nodes=1,2", "nodes 1 and 2 without their scripts");
    phrase_is("fault=delay for=1s amount=20ms nodes=5", "20 ms more each way between all clients and node 5");
    phrase_is("fault=bandwidth for=1s amount=1000B/s nodes=5 clients=7",
              "1000 bytes a second each way between client 7 and node 5");
    phrase_is("fault=client-kill for=1s clients=7", "client 7 killed");
    phrase_is("fault=slow amount=1250ms nodes=1", "node 1 asleep for 1250 ms");
}

TEST(one_of_one_is_no_all) {
    char phrase[CHAOS_FAULT_LINE_MAX];
    struct chaos_fault fault = {.kind = CHAOS_FAULT_PARTITION, .nodes = 1, .clients = 1};
    assert_string_equal(chaos_fault_describe(&fault, 1, 1, phrase, sizeof phrase), "client 1 cut off from node 1");
    fault.clients = UINT64_MAX;
    assert_string_equal(chaos_fault_describe(&fault, 2, 64, phrase, sizeof phrase), "all clients cut off from node 1");
    fault.clients = UINT64_C(1) << 63;
    assert_string_equal(chaos_fault_describe(&fault, 2, 64, phrase, sizeof phrase), "client 64 cut off from node 1");
    fault.clients = UINT64_MAX << 60;
    assert_string_equal(chaos_fault_describe(&fault, 2, 64, phrase, sizeof phrase),
                        "clients 61 to 64 cut off from node 1");
}

TEST(times) {
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0", 0},       {"0s", 0},       {"500ms", 500},        {"10s", 10000},
                {"2m", 120000}, {"1h", 3600000}, {"1000h", 3600000000}, {"3600000000ms", 3600000000}};
    static const char *const bad[] = LIST("", "s", "1", "-1s", "+1s", " 1s", "1s ", "1.5s", "1S", "1h1m", "1001h",
                                          "3600000001ms", "99999999999999999999ms");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t ms = -7;
        assert_true(chaos_time_parse(good[i].text, &ms));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ms;
        if (chaos_time_parse(bad[i], &ms)) {
            fail_msg("'%s' was taken for a time", bad[i]);
        }
    }
}

static uint32_t bit(enum chaos_fault_kind kind) {
    return UINT32_C(1) << kind;
}

TEST(lists_of_kinds) {
    uint32_t kinds = 99;
    struct chaos_error error = {""};
    /* Not every machine can drop packets, and other nodes for a client are no fault. */
    uint32_t all = ((UINT32_C(1) << CHAOS_FAULT_KINDS) - 1) & ~bit(CHAOS_FAULT_DROP) & ~bit(CHAOS_FAULT_CONFIGURE);
    uint32_t breaking = bit(CHAOS_FAULT_RESTART_EMPTY) | bit(CHAOS_FAULT_FLUSHALL) | bit(CHAOS_FAULT_CLOCK_JUMP) |
                        bit(CHAOS_FAULT_CLOCK_SKEW);
    assert_true(chaos_fault_kinds_parse("kill,pause", &kinds, &error));
    assert_int_equal(kinds, bit(CHAOS_FAULT_KILL) | bit(CHAOS_FAULT_PAUSE));
    assert_true(chaos_fault_kinds_parse("all", &kinds, &error));
    assert_int_equal(kinds, all);
    assert_true(chaos_fault_kinds_parse("all,drop", &kinds, &error));
    assert_int_equal(kinds, all | bit(CHAOS_FAULT_DROP));
    assert_true(chaos_fault_kinds_parse("drop", &kinds, &error));
    assert_int_equal(kinds, bit(CHAOS_FAULT_DROP));
    assert_true(chaos_fault_kinds_parse("safe", &kinds, &error));
    assert_int_equal(kinds, all & ~breaking);
    assert_true(chaos_fault_kinds_parse("safe,clock-jump", &kinds, &error));
    assert_int_equal(kinds, (all & ~breaking) | bit(CHAOS_FAULT_CLOCK_JUMP));
    assert_true(chaos_fault_kinds_parse("none", &kinds, &error));
    assert_int_equal(kinds, 0);
    static const char *const bad[] = LIST("", "kill,", ",kill", "kill,,pause", "kil", "killl", "kill pause", "ALL",
                                          "a-name-that-is-longer-than-any-name-of-a-fault-kill");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kinds = 99;
        assert_false(chaos_fault_kinds_parse(bad[i], &kinds, &error));
        assert_int_equal(kinds, 99);
        assert_contains(error.text, "there are: all, safe, none, kill, ");
        assert_contains(error.text, "client-kill");
    }
}

TEST(every_kind_has_its_name) {
    for (int i = 0; i < CHAOS_FAULT_KINDS; i++) {
        enum chaos_fault_kind kind = CHAOS_FAULT_KINDS;
        assert_true(chaos_fault_kind_find(chaos_fault_about((enum chaos_fault_kind)i)->name, &kind));
        assert_int_equal(kind, i);
    }
    enum chaos_fault_kind kind;
    assert_false(chaos_fault_kind_find("", &kind));
    assert_false(chaos_fault_kind_find("kil", &kind));
}

/* Any line gives a fault within its bounds, or a sentence. */
TEST(rubbish) {
    static const char *const pieces[] = {
        "fault=", "kill", "pause", "delay", "clock-skew", "nodes=", "clients=", "at=", "for=",       "amount=", "1",
        "-",      ",",    "all",   "ms",    "s",          "ppm",    "B/s",      " ",   "9999999999", "\xff",    "="};
    uint32_t random = 3;
    for (int i = 0; i < 100000; i++) {
        struct chaos_error error = {""};
        char line[CHAOS_FAULT_LINE_MAX] = "";
        for (int n = 0; n < 12; n++) {
            random = random * 1664525 + 1013904223;
            strcat(line, pieces[(random >> 8) % (sizeof pieces / sizeof *pieces)]);
        }
        struct chaos_fault fault;
        if (chaos_fault_parse(line, 3, 4, &fault, &error)) {
            assert_true(fault.kind < CHAOS_FAULT_KINDS && fault.nodes < 8 && fault.clients < 16);
        } else {
            assert_true(strlen(error.text) > 10);
        }
    }
}
