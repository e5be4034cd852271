/* Reads histories: what is combined, what is refused, and with which words. */
#include "history/history.h"
#include "history_lines.h"
#include "test.h"

static void read_ok(const char *text, struct chaos_history *history) {
    struct chaos_error error = {""};
    if (!lines_read(text, strlen(text), history, &error)) {
        fail_msg("%s", error.text);
    }
}

static void check_whole(const struct chaos_history *history) {
    assert_string_equal(history->version, "redis 7.0.15");
    assert_string_equal(history->experiment, "split");
    assert_true(history->seed == UINT64_MAX - 1);
    assert_int_equal(history->start_us, 1000);
    assert_int_equal(history->finish_us, 5001);
    assert_int_equal(history->node_count, 3);
    assert_int_equal(history->client_count, 4);
    assert_int_equal(history->resource_count, 2);
    assert_string_equal(history->resources[1], "b");
    assert_int_equal(history->wait_ms, 10000);
    assert_int_equal(chaos_quorum(history), 2);
    assert_int_equal(history->operation_count, 1);
    const struct chaos_operation *operation = history->operations;
    assert_int_equal(operation->client, 0);
    assert_int_equal(operation->resource, 1);
    assert_int_equal(operation->what, CHAOS_ACQUIRE);
    assert_int_equal(operation->op, 7);
    assert_int_equal(operation->invoked_us, 1100);
    assert_int_equal(operation->deadline_us, 11100);
    assert_int_equal(operation->completed_us, 1109);
    assert_int_equal(operation->attempts, 2);
    assert_string_equal(operation->result, "OK");
    assert_string_equal(operation->votes, "GGP");
    assert_null(operation->message);
    assert_int_equal(history->lease_count, 1);
    assert_int_equal(history->leases[0].from_us, 1110);
    assert_int_equal(history->leases[0].until_us, 2900);
    assert_int_equal(history->leases[0].ended_us, 1200);
    assert_true(history->leases[0].released);
    assert_int_equal(history->leases[0].claim_count, 1);
    assert_int_equal(history->increment_count, 1);
    assert_int_equal(history->increments[0].read, 41);
    assert_int_equal(history->increments[0].intent_us, 1120);
    assert_int_equal(history->increments[0].done_us, 1130);
    assert_int_equal(history->increments[0].until_us, 2900);
    assert_int_equal(history->sweep_count, 1);
    assert_int_equal(history->sweeps[0].to_us, 1145);
    assert_false(history->sweeps[0].nodes[0].answered);
    assert_true(history->sweeps[0].nodes[1].answered);
    assert_string_equal(history->sweeps[0].nodes[1].token, "");
    assert_string_equal(history->sweeps[0].nodes[2].token, "0123456789abcdef");
    assert_int_equal(history->sweeps[0].nodes[2].pttl_ms, -1);
    assert_int_equal(history->band_count, 1);
    assert_int_equal(history->bands[0].fault.kind, CHAOS_FAULT_PARTITION);
    assert_int_equal(history->bands[0].fault.nodes, 5);
    assert_int_equal(history->bands[0].fault.clients, 10);
    assert_int_equal(history->bands[0].from_us, 1300);
    assert_int_equal(history->bands[0].to_us, 1400);
    assert_null(history->bands[0].error);
    assert_int_equal(history->life_count, 1);
    assert_int_equal(history->lives[0].pid, 500);
    assert_int_equal(history->lives[0].ended_us, 1900);
    assert_int_equal(history->lives[0].signal, 9);
    assert_true(history->lives[0].expected);
    assert_int_equal(history->counters[1], 42);
    assert_true(history->left_told);
    assert_string_equal(history->left[0], "a key");
}

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* In order, backwards, shuffled: the same history. */
TEST(any_order) {
    uint64_t random = 1;
    for (int round = 0; round < 500; round++) {
        const char *lines[EVENTS];
        char text[8192] = "";
        memcpy(lines, whole, sizeof lines);
        for (size_t i = 0; round > 0 && i < EVENTS; i++) {
            size_t other = round == 1 ? EVENTS - 1 - i : next(&random) % EVENTS;
            if (round > 1 || other > i) {
                const char *line = lines[i];
                lines[i] = lines[other];
                lines[other] = line;
            }
        }
        for (size_t i = 0; i < EVENTS; i++) {
            strcat(text, lines[i]);
        }
        struct chaos_history history;
        read_ok(text, &history);
        check_whole(&history);
        chaos_history_clear(&history);
    }
}

TEST(half_lines_and_strangers) {
    struct chaos_history history;
    read_ok(START "{\"event\":\"whatever\",\"t\":\"now\"}\n" CLAIM "{\"t\":1300,\"event\":\"clai", &history);
    assert_int_equal(history.lease_count, 1);
    assert_int_equal(history.leases[0].ended_us, CHAOS_NEVER_US);
    assert_int_equal(history.finish_us, CHAOS_NEVER_US);
    assert_null(history.counters);
    assert_false(history.left_told);
    chaos_history_clear(&history);
    /* A last line without its newline may be cut, even if it looks complete. */
    read_ok(START "{\"t\":1300,\"event\":\"claim\"}", &history);
    assert_int_equal(history.lease_count, 0);
    chaos_history_clear(&history);
}

TEST(parts_are_put_together) {
    struct chaos_history history;
    read_ok(
        START CLAIM
        "{\"t\":1115,\"event\":\"claim\",\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\",\"until\":2800}\n"
        "{\"t\":1116,\"event\":\"claim\",\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\",\"until\":3000}\n"
        "{\"t\":1105,\"event\":\"claim\",\"client\":2,\"resource\":1,\"token\":\"z\",\"until\":1200}\n"
        "{\"t\":1200,\"event\":\"end\",\"client\":2,\"resource\":1,\"token\":\"z\",\"how\":\"lost\"}\n" SPAWN EXIT
        "{\"t\":1950,\"event\":\"spawn\",\"client\":1,\"pid\":500}\n"
        "{\"t\":1120,\"event\":\"intent\",\"client\":2,\"resource\":2,\"token\":\"z\",\"read\":1}\n"
        "{\"t\":1121,\"event\":\"intent\",\"client\":2,\"resource\":2,\"token\":\"z\",\"read\":1}\n"
        "{\"t\":1121,\"event\":\"done\",\"client\":2,\"resource\":2,\"token\":\"z\",\"read\":1,\"until\":9}\n",
        &history);
    assert_int_equal(history.lease_count, 2);
    assert_string_equal(history.leases[0].token, "z");
    assert_false(history.leases[0].released);
    assert_int_equal(history.leases[0].ended_us, 1200);
    /* A claim that does not last longer is dropped. */
    assert_int_equal(history.leases[1].claim_count, 2);
    assert_int_equal(history.leases[1].claims[1].at_us, 1116);
    assert_int_equal(history.leases[1].claims[1].until_us, 3000);
    assert_int_equal(history.leases[1].until_us, 3000);
    assert_int_equal(history.life_count, 2);
    assert_int_equal(history.lives[1].spawned_us, 1950);
    assert_int_equal(history.lives[1].ended_us, CHAOS_NEVER_US);
    assert_int_equal(history.increments[0].done_us, CHAOS_NEVER_US);
    assert_int_equal(history.increments[1].done_us, 1121);
    chaos_history_clear(&history);
}

#define FENCED_START                                                                                                   \
    "{\"t\":1000,\"event\":\"start\",\"version\":\"redis 7.0.15\",\"command\":\"c\",\"backend\":\"process\","          \
    "\"experiment\":\"\",\"seed\":1,\"nodes\":3,\"clients\":4,\"resources\":[\"a\",\"b\"],\"ttl_ms\":2000,"            \
    "\"node_timeout_ms\":50,\"wait_ms\":10000,\"breaks_assumptions\":true,\"memoryless\":true,\"tls\":true,"           \
    "\"fencing\":true,"                                                                                                \
    "\"restart_guard\":\"observed\",\"clock_guard\":true,\"first_boot\":true,\"no_heal\":true,\"ttl_max_ms\":2500,"    \
    "\"lock_delay_ms\":500}\n"
#define ABOUT "\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\""
#define FENCED_INTENT                                                                                                  \
    "{\"t\":1120,\"event\":\"intent\"," ABOUT ",\"read\":41,\"fence\":1795167037123456789,\"number\":7}\n"
#define REFUSED(what)                                                                                                  \
    "{\"t\":1130,\"event\":\"refused\"," ABOUT ",\"what\":\"" what                                                     \
    "\",\"read\":41,\"fence\":1795167037123456789,\"highest\":1795167037123456790}\n"
#define TALLY                                                                                                          \
    "{\"t\":1140,\"event\":\"tally\",\"client\":1,\"pid\":500,\"fenced_fast\":1,\"fenced_slow\":2,\"healed\":3,"       \
    "\"quarantines\":4,\"clock_jumps\":5}\n"

TEST(protection_is_read) {
    struct chaos_history history;
    read_ok(FENCED_START TALLY FENCED_INTENT REFUSED("write") REFUSED("read") INVOKE
            "{\"t\":1109,\"event\":\"complete\",\"client\":1,\"op\":7,\"result\":\"OK\",\"attempts\":2,\"token\":\"t\","
            "\"fence\":1795167037123456789,\"votes\":\"GGP\",\"message\":\"\"}\n",
            &history);
    const struct chaos_protection *protection = &history.protection;
    assert_true(protection->fencing && protection->clock_guard && protection->first_boot && protection->no_heal);
    assert_int_equal(protection->restart_guard, CHAOS_RESTART_GUARD_OBSERVED);
    assert_int_equal(protection->ttl_max_ms, 2500);
    assert_int_equal(protection->lock_delay_ms, 500);
    assert_true(history.memoryless && history.tls);
    assert_int_equal(history.operations[0].fence, INT64_C(1795167037123456789));
    assert_string_equal(history.operations[0].token, "t");
    assert_int_equal(history.increment_count, 1);
    assert_true(history.increments[0].refused);
    assert_int_equal(history.increments[0].done_us, CHAOS_NEVER_US);
    assert_int_equal(history.increments[0].fence, INT64_C(1795167037123456789));
    assert_int_equal(history.increments[0].read_number, 7);
    assert_int_equal(history.refusal_count, 2);
    assert_int_equal(history.refusals[0].highest, INT64_C(1795167037123456790));
    assert_int_equal(history.refusals[0].write + history.refusals[1].write, 1);
    assert_int_equal(history.tally_count, 1);
    assert_int_equal(history.tallies[0].fenced_slow, 2);
    assert_int_equal(history.tallies[0].clock_jumps, 5);
    chaos_history_clear(&history);
    read_ok(FENCED_START FENCED_INTENT "{\"t\":1130,\"event\":\"done\"," ABOUT
                                       ",\"read\":41,\"until\":2900,\"number\":8}\n",
            &history);
    assert_int_equal(history.increments[0].write_number, 8);
    chaos_history_clear(&history);
    /* A refused write is not done, and a refusal needs an intent. */
    lines_refuse(FENCED_START FENCED_INTENT REFUSED("write") DONE, "done: there is no `intent` of client 1");
    lines_refuse(FENCED_START REFUSED("write"), "refused: there is no `intent` of client 1");
}

TEST(setups_are_read) {
    struct chaos_history history;
    static const char told[] = "{\"t\":1050,\"event\":\"spawn\",\"client\":1,\"pid\":501,\"nodes\":[1,3],"
                               "\"quorum\":%d}\n{\"t\":1060,\"event\":\"spawn\",\"client\":2,\"pid\":502}\n"
                               "{\"t\":1070,\"event\":\"exit\",\"client\":1,\"pid\":501,\"status\":0,\"signal\":0,"
                               "\"expected\":true}\n";
    char text[2048];
    snprintf(text, sizeof text, FENCED_START);
    snprintf(text + strlen(text), sizeof text - strlen(text), told, 2);
    read_ok(text, &history);
    assert_true(chaos_is_configured(&history));
    assert_int_equal(history.lives[0].setup.nodes, 0x05);
    assert_int_equal(history.lives[0].setup.quorum, 2);
    assert_int_equal(history.lives[0].ended_us, 1070);
    assert_int_equal(history.lives[1].setup.nodes, 0x07);
    assert_int_equal(history.lives[1].setup.quorum, 2);
    chaos_history_clear(&history);
    snprintf(text, sizeof text, FENCED_START);
    snprintf(text + strlen(text), sizeof text - strlen(text), told, 3);
    lines_refuse(text, "\"quorum\" is 3; a number from 2 to 2 is expected");
}

TEST(modes_are_read) {
    struct chaos_history history;
#define SHARED_INVOKE                                                                                                  \
    "{\"t\":1100,\"event\":\"invoke\",\"client\":1,\"op\":7,\"what\":\"acquire\",\"resource\":2,\"deadline\":11100,"   \
    "\"mode\":\"shared\"}\n"
#define SHARED_CLAIM                                                                                                   \
    "{\"t\":1110,\"event\":\"claim\",\"client\":1,\"resource\":2,\"token\":\"t\",\"until\":2900,\"mode\":\"shared\"}"  \
    "\n"
#define READ                                                                                                           \
    "{\"t\":1120,\"event\":\"read\",\"client\":1,\"resource\":2,\"token\":\"t\",\"read\":41,\"until\":2900,\"fence\":" \
    "999,"                                                                                                             \
    "\"number\":8}\n"
    read_ok(START SHARED_INVOKE COMPLETE SHARED_CLAIM READ, &history);
    assert_true(history.operations[0].shared && history.leases[0].shared);
    assert_int_equal(history.read_count, 1);
    const struct chaos_read *read = history.reads;
    assert_int_equal(read->client, 0);
    assert_int_equal(read->resource, 1);
    assert_string_equal(read->token, "t");
    assert_int_equal(read->count, 41);
    assert_int_equal(read->at_us, 1120);
    assert_int_equal(read->until_us, 2900);
    assert_int_equal(read->fence, 999);
    assert_int_equal(read->number, 8);
    chaos_history_clear(&history);
    read_ok(START INVOKE COMPLETE CLAIM, &history);
    assert_false(history.operations[0].shared || history.leases[0].shared);
    assert_int_equal(history.readers, 0);
    chaos_history_clear(&history);
}

TEST(readers_are_read) {
    struct chaos_history history;
#define READ_BY(nodes)                                                                                                 \
    START "{\"t\":1140,\"event\":\"keys\",\"to\":1145,\"resource\":2,\"nodes\":[null,[\"\",0]," nodes "]}\n"
    read_ok(READ_BY("[[\"a\",7],[\"123456789abcdefs\",0]]"), &history);
    const struct chaos_sight *sight = &history.sweeps[0].nodes[2];
    assert_true(sight->answered && sight->token[0] == '\0');
    assert_int_equal(history.sweeps[0].nodes[1].reader_count, 0);
    assert_int_equal(sight->reader_count, 2);
    assert_string_equal(sight->readers[0].token, "a");
    assert_int_equal(sight->readers[0].left_ms, 7);
    assert_string_equal(sight->readers[1].token, "123456789abcdefs");
    chaos_history_clear(&history);
    lines_refuse(READ_BY("[[\"a\",7],\"b\"]"), "\"nodes\"");
    lines_refuse(READ_BY("[[\"a\",7],[\"0123456789abcdefs\",7]]"), "\"nodes\"");
    lines_refuse(READ_BY("[[\"a\",-1]]"), "\"nodes\"");
    lines_refuse(READ_BY("[]"), "\"nodes\"");
}

TEST(queues_are_read) {
    struct chaos_history history;
#define QUEUE(lines)                                                                                                   \
    "{\"t\":1140,\"event\":\"keys\",\"to\":1145,\"resource\":2,\"nodes\":[null,[\"\",0],[\"\",0]],\"lines\":" lines    \
    "}\n"
    read_ok(START INVOKE "{\"t\":1109,\"event\":\"complete\",\"client\":1,\"op\":7,\"result\":\"OK\",\"attempts\":2,"
                         "\"token\":\"t\",\"ticket\":1795402357481564,\"votes\":\"GGP\",\"message\":\"\"}\n" QUEUE(
                             "[[],[\"a\",\"0123456789abcdef\"],[\"a\"]]"),
            &history);
    assert_false(history.polls || history.tls);
    assert_int_equal(history.operations[0].ticket, INT64_C(1795402357481564));
    assert_int_equal(history.sweeps[0].nodes[0].line_count, 0);
    assert_int_equal(history.sweeps[0].nodes[1].line_count, 2);
    assert_string_equal(history.sweeps[0].nodes[1].line[1], "0123456789abcdef");
    assert_string_equal(history.sweeps[0].nodes[2].line[0], "a");
    chaos_history_clear(&history);
    lines_refuse(START QUEUE("[[],[],[7]]"), "\"lines\"");
    lines_refuse(START QUEUE("[[],[],\"a\"]"), "\"lines\"");
    lines_refuse(START QUEUE("[[],[],[\"0123456789abcdef0\"]]"), "\"lines\"");
}

TEST(faults_that_failed) {
    struct chaos_history history;
    read_ok(START FAULT
            "{\"t\":1400,\"event\":\"heal\",\"id\":1,\"error\":\"node 3 does not answer\"}\n"
            "{\"t\":1310,\"event\":\"fault\",\"id\":2,\"kind\":\"kill\",\"nodes\":[2],\"clients\":[],\"amount\":0,"
            "\"text\":\"node 2 killed\",\"error\":\"no\"}\n"
            "{\"t\":1310,\"event\":\"heal\",\"id\":2,\"error\":\"\"}\n",
            &history);
    /* A fault that could not be undone never ends. */
    assert_int_equal(history.bands[0].to_us, CHAOS_NEVER_US);
    assert_string_equal(history.bands[0].error, "node 3 does not answer");
    assert_int_equal(history.bands[1].to_us, 1310);
    assert_string_equal(history.bands[1].error, "no");
    chaos_history_clear(&history);
}

TEST(what_is_refused) {
    lines_refuse("", "h.jsonl: there is no `start`");
    lines_refuse(CLAIM END, "h.jsonl: there is no `start`");
    lines_refuse(START START, "h.jsonl:2: a second `start`");
    lines_refuse(START "\n", "h.jsonl:2: not JSON");
    lines_refuse(START "{\"t\":1,\n", "h.jsonl:2: not JSON");
    lines_refuse(START CLAIM "[]\n", "h.jsonl:3: not an event: a JSON object");
    lines_refuse(START "{}\n", "h.jsonl:2: an event: \"event\" is missing; a text");
    lines_refuse(START "{\"event\":5}\n", "\"event\" is 5;");
    lines_refuse(START "{\"event\":\"heal\",\"id\":1,\"error\":\"\"}\n", "heal: \"t\" is missing; a number");
    lines_refuse(START "{\"t\":-1,\"event\":\"heal\"}\n", "heal: \"t\" is -1; a number from 0 to");
    lines_refuse(START "{\"t\":1,\"t\":1,\"event\":\"heal\"}\n", "h.jsonl:2: not JSON: duplicate");
    lines_refuse(START "{\"t\":99999999999999999999,\"event\":\"heal\"}\n", "h.jsonl:2: not JSON: too big");
    lines_refuse(START COMPLETE, "h.jsonl:2: complete: client 1's operation 7 was never invoked");
    lines_refuse(START INVOKE COMPLETE COMPLETE, "h.jsonl:4: complete: client 1's operation 7 is complete already");
    lines_refuse(START INVOKE INVOKE, "h.jsonl:3: invoke: client 1 has an operation 7 already");
    lines_refuse(START INVOKE
                 "{\"t\":1099,\"event\":\"complete\",\"client\":1,\"op\":7,\"result\":\"OK\",\"attempts\":1,"
                 "\"token\":\"\",\"votes\":"
                 "\"\",\"message\":\"\"}\n",
                 "h.jsonl:3: complete: client 1's operation 7 was invoked later");
    lines_refuse(START END, "h.jsonl:2: end: there is no `claim` of token 0123456789abcdef before it");
    lines_refuse(START CLAIM END END, "h.jsonl:4: end: token 0123456789abcdef has an `end` before it");
    lines_refuse(
        START CLAIM END
        "{\"t\":1201,\"event\":\"claim\",\"client\":1,\"resource\":2,\"token\":\"0123456789abcdef\",\"until\":2900}\n",
        "h.jsonl:4: claim: token 0123456789abcdef has an `end` before it");
    lines_refuse(
        START CLAIM
        "{\"t\":1201,\"event\":\"claim\",\"client\":2,\"resource\":2,\"token\":\"0123456789abcdef\",\"until\":2900}\n",
        "h.jsonl:3: claim: token 0123456789abcdef is of client 1 and resource 2");
    lines_refuse(START DONE, "h.jsonl:2: done: there is no `intent` of client 1");
    lines_refuse(START INTENT DONE DONE, "h.jsonl:4: done: there is no `intent`");
    lines_refuse(START HEAL, "h.jsonl:2: heal: fault 1 never began");
    lines_refuse(START FAULT FAULT, "h.jsonl:3: fault: there is a fault 1 already");
    lines_refuse(START FAULT HEAL HEAL, "h.jsonl:4: heal: fault 1 has ended already");
    lines_refuse(START FAULT "{\"t\":1299,\"event\":\"heal\",\"id\":1,\"error\":\"\"}\n",
                 "h.jsonl:3: heal: fault 1 began later");
    lines_refuse(START EXIT, "h.jsonl:2: exit: client 1's process 500 was not begun before it");
    lines_refuse(START SPAWN SPAWN, "h.jsonl:3: spawn: client 1's process 500 was begun and did not end");
    lines_refuse(START LEFT LEFT, "h.jsonl:3: a second `left`");
    lines_refuse(START FINISH FINISH, "h.jsonl:3: a second `finish`");
}

/* Replaces one member of one event. `from` occurs in the event. */
static void refuse_with(const char *event, const char *from, const char *to, const char *sentence) {
    char text[4096];
    const char *at = strstr(event, from);
    assert_non_null(at);
    bool is_start = strcmp(event, START) == 0;
    snprintf(text, sizeof text, "%s%.*s%s%s", is_start ? "" : START, (int)(at - event), event, to, at + strlen(from));
    lines_refuse(text, sentence);
}

TEST(members_of_protection_out_of_range) {
    refuse_with(START, "\"ttl_ms\"", "\"fencing\":1,\"ttl_ms\"", "\"fencing\" is 1; true or false");
    refuse_with(START, "\"ttl_ms\"", "\"restart_guard\":\"on\",\"ttl_ms\"", "off, observed or strict is expected");
    refuse_with(START, "\"ttl_ms\"", "\"restart_guard\":1,\"ttl_ms\"", "\"restart_guard\" is 1; a text");
    refuse_with(START, "\"ttl_ms\"", "\"ttl_max_ms\":-1,\"ttl_ms\"", "\"ttl_max_ms\" is -1");
    refuse_with(COMPLETE, "\"votes\"", "\"fence\":\"9\",\"votes\"", "\"fence\" is \"9\"; a number");
    refuse_with(FENCED_INTENT, "\"number\":7", "\"number\":-7", "\"number\" is -7");
    refuse_with(REFUSED("read"), "\"highest\"", "\"hi\"", "refused: \"highest\" is missing");
    refuse_with(REFUSED("read"), "\"what\":\"read\"", "\"what\":\"look\"", "\"read\" or \"write\" is expected");
    refuse_with(TALLY, "\"quarantines\":4", "\"quarantines\":null", "\"quarantines\" is null; a number");
    refuse_with(TALLY, "\"pid\":500", "\"pid\":0", "\"pid\" is 0");
}

TEST(members_out_of_range) {
    refuse_with(START, "\"nodes\":3", "\"nodes\":0", "start: \"nodes\" is 0; a number from 1 to 31 is expected");
    refuse_with(START, "\"nodes\":3", "\"nodes\":32", "\"nodes\" is 32");
    refuse_with(START, "\"clients\":4", "\"clients\":65", "\"clients\" is 65");
    refuse_with(START, "[\"a\",\"b\"]", "[]", "\"resources\" is []; a list of 1 to 32");
    refuse_with(START, "[\"a\",\"b\"]", "[\"a\",1]", "a list of texts");
    refuse_with(START, "\"ttl_ms\":2000", "\"ttl_ms\":2e3", "\"ttl_ms\" is 2000.0; a number");
    refuse_with(START, "false", "0", "\"breaks_assumptions\" is 0; true or false");
    refuse_with(START, "\"seed\":-2,", "", "\"seed\" is missing");
    refuse_with(CLAIM, "\"client\":1", "\"client\":5",
                "h.jsonl:2: claim: \"client\" is 5; a number from 1 to 4 is expected");
    refuse_with(CLAIM, "\"client\":1", "\"client\":0", "\"client\" is 0");
    refuse_with(CLAIM, "\"resource\":2", "\"resource\":3", "\"resource\" is 3; a number from 1 to 2");
    refuse_with(CLAIM, "0123456789abcdef", "0123456789abcdefg", "a text of 1 to 16 bytes");
    refuse_with(CLAIM, "0123456789abcdef", "", "\"token\" is \"\"; a text of 1 to 16 bytes");
    refuse_with(CLAIM, "2900", "1109", "\"until\" is 1109; a number from 1110 to");
    refuse_with(CLAIM, "2900", "\"later\"", "\"until\" is \"later\"; a number");
    refuse_with(END, "\"release\"", "\"gone\"", "\"how\" is \"gone\"; \"lost\" or \"release\" is expected");
    refuse_with(INVOKE, "\"acquire\"", "\"extend\"", "\"acquire\" or \"release\"");
    refuse_with(INVOKE, "11100", "1099", "\"deadline\" is 1099");
    refuse_with(COMPLETE, "\"OK\"", "\"\"", "\"result\" is \"\"");
    refuse_with(COMPLETE, "\"OK\"", "\"A_RESULT_TOO_LONG\"", "a text of 1 to 15 bytes");
    refuse_with(COMPLETE, "GGP", "GGPP", "\"votes\" is \"GGPP\"; a text of 0 to 3 bytes");
    refuse_with(COMPLETE, ",\"message\":\"\"", "", "\"message\" is missing");
    refuse_with(FAULT, "partition", "partitions",
                "\"kind\" is \"partitions\"; the name of a kind of faults is expected");
    refuse_with(FAULT, "[1,3]", "[1,4]", "\"nodes\" is [1,4]; a list of numbers from 1 to 3");
    refuse_with(FAULT, "[1,3]", "[\"1\"]", "a list of numbers from 1 to 3");
    refuse_with(FAULT, "[2,4]", "4", "\"clients\" is 4; a list of 0 to 4");
    refuse_with(KEYS, "null,", "", "\"nodes\" is [[\"\",0],[\"0123456789abcdef\",-1]]; a list of 3 to 3");
    refuse_with(KEYS, "null", "false", "a list of null, [\"\",0], [token,pttl] or [[token,ms]…]");
    refuse_with(KEYS, "-1", "-2", "a list of null");
    refuse_with(KEYS, "\"\",0", "\"\"", "a list of null");
    refuse_with(KEYS, "1145", "1139", "\"to\" is 1139");
    refuse_with(EXIT, "true", "1", "\"expected\" is 1; true or false");
    refuse_with(EXIT, "-1", "-2", "\"status\" is -2");
    refuse_with(FINISH, "[0,42]", "[0]", "\"counters\" is [0]; a list of 2 to 2");
    refuse_with(FINISH, "42", "\"42\"", "a list of numbers");
    refuse_with(LEFT, "\"a key\"", "7", "a list of texts");
    refuse_with(SHARED_CLAIM, "shared", "both", "\"mode\" is \"both\"; \"exclusive\" or \"shared\" is expected");
    refuse_with(READ, "\"read\":41,", "", "\"read\" is missing");
    refuse_with(INTENT, "41", "-1", "\"read\" is -1");
}

TEST(a_file_that_cannot_be_read) {
    struct chaos_history history;
    struct chaos_error error = {""};
    FILE *in = fopen("/tmp", "re");
    assert_non_null(in);
    assert_false(chaos_history_read(in, "h.jsonl", &history, &error));
    assert_string_equal(error.text, "h.jsonl:1: cannot be read: Is a directory");
    fclose(in);
    chaos_history_clear(&history);
}
