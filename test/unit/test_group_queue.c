/* Waiting in queues through the public API over a fake env: who takes a place, what is counted of
 * waiters, and what an inspection tells of them. */
#include "base/holder.h"
#include "queue_kit.h"

/* --- Taking a place --- */

GROUP_TEST(a_lost_try_takes_a_place_in_the_same_turn, five_nodes) {
    redlock_request *request = wait_for_it(&seen);
    const struct fake_sent *try = &fake.sent[0];
    assert_true(redlock_holder_is_try(try->token, strlen(try->token)));
    assert_in_range(try->token[0], 'g', 'v');
    assert_null(fake.channel);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    assert_int_equal(fake.sent_count, 15);
    for (unsigned i = 0; i < 5; i++) {
        const struct fake_sent *release = &fake.sent[5 + i], *wait = &fake.sent[10 + i];
        char ticket[17];
        assert_is(release->operation, REDLOCK_OP_RELEASE);
        assert_string_equal(release->token, try->token);
        /* who is in line before us must not be passed over */
        assert_is(release->handing, REDLOCK_HAND_OVER);
        assert_is(wait->operation, REDLOCK_OP_WAIT);
        assert_int_equal(strlen(wait->token), 48);
        (void)snprintf(ticket, sizeof ticket, "%016llx", (unsigned long long)wait->place.ticket);
        assert_memory_equal(wait->token, ticket, 16);
        assert_int_equal(wait->place.ticket, fake.wall_us); /* no node's clock is known */
        assert_int_equal(wait->place.stale_ms, 7500);
        assert_int_equal(wait->place.queue_ttl_ms, 15000);
        assert_true(wait->place.takes);
        assert_string_equal(wait->token, fake.sent[10].token);
    }
    assert_int_equal(strlen(fake.channel), 40);
    redlock_request_cancel(request);
}

GROUP_TEST(a_short_ttl_does_not_shorten_the_queue, five_nodes) {
    struct seen brief = {0};
    redlock_acquire_options options = patient_options();
    redlock_request *request = queue_up(&seen), *other;
    options.ttl_ms = 100;
    assert_is(redlock_group_acquire(fake.group, "r", &options, &other, see, &brief), REDLOCK_OK);
    assert_int_equal(last_wait(0)->ttl_ms, 100);
    assert_int_equal(last_wait(0)->place.stale_ms, 75);
    assert_int_equal(last_wait(0)->place.queue_ttl_ms, 15000);
    redlock_request_cancel(other);
    redlock_request_cancel(request);
}

GROUP_TEST(the_ticket_stays_and_the_token_changes, five_nodes) {
    redlock_request *request = queue_up(&seen);
    const struct fake_sent first = *last_wait(0);
    push(0, 1);
    fake_env_pass_ms(&fake, 2);
    fake_env_votes(&fake, REDLOCK_OP_WAIT, "GG");
    refresh(); /* an earlier one has the other nodes, so these two go back */
    assert_int_equal(statistics().yields, 1);
    const struct fake_sent *second = last_wait(0);
    assert_string_not_equal(second->token, first.token);
    assert_memory_equal(second->token, first.token, 16);
    assert_int_equal(second->place.id, first.place.id);
    redlock_request_cancel(request);
}

GROUP_TEST(who_does_not_queue_has_a_short_token, five_nodes) {
    redlock_acquire_options options = default_options();
    for (unsigned i = 0; i < 2; i++) {
        fake.sent_count = 0;
        acquire(&options, &seen);
        assert_int_equal(strlen(fake.sent[0].token), 32);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
        options.wait_timeout_ms = 60000;
        options.order = REDLOCK_ORDER_NONE;
    }
    assert_null(fake.channel);
}

GROUP_TEST(nobody_jumps_a_queue_that_this_process_waits_in, five_nodes) {
    struct seen first, second, third;
    redlock_request *one = queue_up(&first);
    redlock_request *two = wait_for_it(&second);
    /* The late ones of `first`. */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 2);
    assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_WAIT)->place.takes);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_WAIT)->place.id, 1);
    redlock_request_cancel(one);
    redlock_request_cancel(two);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_is(second.code, REDLOCK_ERR_CANCELLED);
    const redlock_acquire_options options = patient_options();
    acquire(&options, &third);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
}

GROUP_TEST(who_handed_over_does_not_jump_the_queue, five_nodes) {
    const redlock_acquire_options options = patient_options();
    release_quietly(take(&options, &seen), true);
    wait_for_it(&seen);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->place.takes);
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    assert_is(seen.code, REDLOCK_OK);
    release_quietly(seen.lease, false);
    wait_for_it(&seen); /* nobody waits any more */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
}

GROUP_TEST(a_wait_that_a_node_does_not_know_is_sent_by_source, five_nodes) {
    wait_for_it(&seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    const struct fake_sent first = *last_wait(0);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_no_script(&fake, i, REDLOCK_OP_WAIT);
        const struct fake_sent *again = fake_env_waiting(&fake, i, REDLOCK_OP_WAIT);
        assert_true(again->by_source);
        assert_string_equal(again->token, first.token);
        assert_int_equal(again->round, first.round);
        assert_int_equal(again->place.id, first.place.id);
        assert_int_equal(again->place.ticket, first.place.ticket);
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    assert_is(seen.code, REDLOCK_OK);
}

GROUP_TEST(who_gives_up_in_a_pause_is_told_what_the_nodes_said, five_nodes) {
    redlock_acquire_options options = patient_options();
    options.wait_timeout_ms = 3000;
    fake.refusing = redlock_nodes_all(5) & ~REDLOCK_NODE(0);
    acquire(&options, &seen);
    while (seen.count == 0) { /* node 0 grants each time, and gets the lock back before the pause */
        if (fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)) {
            fake_env_answer(&fake, 0, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
        } else if (fake_env_waiting(&fake, 0, REDLOCK_OP_WAIT)) {
            fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
        } else if (fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)) {
            fake_env_answer(&fake, 0, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
        }
        fake_env_pass_ms(&fake, 1);
    }
    assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
    assert_true(statistics().yields > 0);
    for (unsigned i = 1; i < 5; i++) {
        assert_is(seen.votes[i], REDLOCK_VOTE_FAILED);
    }
    assert_contains(seen.message, ": no answer)");
    fake.refusing = 0;
}

/* Whoever is before us may have died with the holder. */
GROUP_TEST(the_second_in_line_looks_when_the_holder_may_be_dead, five_nodes) {
    all_listen();
    redlock_request *request = queue_up(&seen); /* the lock ends in a second */
    fake_env_pass_ms(&fake, 1010);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    fake_env_pass_ms(&fake, 2);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
    /* The holder may be alive, with a node that lost its key. */
    assert_false(last_wait(0)->place.takes);
    for (unsigned i = 0; i < 5; i++) {
        fake_env_queue(&fake, i, EARLIER, 8);
    }
    fake_env_pass_ms(&fake, 1018);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0); /* others look before */
    fake_env_pass_ms(&fake, 64);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
    redlock_request_cancel(request);
}

GROUP_TEST(statistics_count_what_waiters_did, five_nodes) {
    all_listen();
    queue_up(&seen);
    answer_late_tries();
    push(0, 1);
    fake_env_pass_ms(&fake, 2); /* no quorum: it looks */
    assert_int_equal(statistics().splits, 1);
    fake_env_votes(&fake, REDLOCK_OP_WAIT, "GG");
    for (unsigned i = 2; i < 5; i++) {
        fake_env_queue(&fake, i, LATER, 0);
    }
    assert_int_equal(statistics().yields, 1); /* one other token has a quorum */
    for (unsigned i = 0; i < 5; i++) {
        assert_is(fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE)->handing, REDLOCK_HAND_NOBODY);
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
        fake_env_queue(&fake, i, LATER, 0);
    }
    assert_int_equal(statistics().polls, 0);
    fake_env_pass_ms(&fake, 1003); /* the holder's keys have ended */
    assert_int_equal(statistics().polls, 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->place.takes);
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    assert_is(seen.code, REDLOCK_OK);
    const redlock_statistics now = statistics();
    assert_int_equal(now.queued, 1);
    assert_int_equal(now.handed_over, 1);
    assert_int_equal(now.passed_over, 1);
    assert_int_equal(now.attempts, 3); /* the try, the place, and the place after the yield */
    assert_int_equal(seen.passed_over, 1);
    static const char *const lines[] =
        LIST("acquire 'r': takes a place in the queues as attempt 2", "wait 'r': node node1:6379 handed it over",
             "wait 'r': 2 nodes granted it, 3 are needed: asks why",
             "wait 'r': gives back what it got, and waits on as attempt 3",
             "wait 'r': first in line, asks whether it is free", "acquire 'r': OK at attempt 3, valid for ");
    const char *at = fake.log;
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
        at = strstr(at, lines[i]); /* in this order */
        assert_non_null(at);
    }
    assert_lacks(fake.log, redlock_lease_token(seen.lease));
}

static unsigned count_in_log(const char *line) {
    unsigned count = 0;
    for (const char *at = fake.log; (at = strstr(at, line)) != NULL; at++) {
        count++;
    }
    return count;
}

GROUP_TEST(the_log_tells_of_changes_only, five_nodes) {
    static const char asks[] = "wait 'r': first in line, asks whether it is free";
    queue_up(&seen);
    for (unsigned times = 0; times < 3; times++) {
        refresh();
    }
    assert_int_equal(count_in_log("1 before us"), 5);
    /* A stranger holds the lock, and nobody waits before us. */
    for (unsigned polls = 0; polls < 3; polls++) {
        while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
            fake_env_pass_ms(&fake, 1);
        }
        for (unsigned i = 0; i < 5; i++) {
            fake_env_queue(&fake, i, "stranger", 0);
        }
    }
    assert_int_equal(count_in_log("0 before us"), 5);
    assert_true(statistics().polls > 1);
    assert_int_equal(count_in_log(asks), 1);
    while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
        fake_env_pass_ms(&fake, 1);
    }
    for (unsigned i = 0; i < 5; i++) {
        /* Another holder, and it does not hand over either. */
        fake_env_queue(&fake, i, "another", 0);
    }
    assert_int_equal(count_in_log("0 before us"), 10);
    const uint64_t polls = statistics().polls;
    while (statistics().polls == polls) {
        fake_env_pass_ms(&fake, 1);
    }
    assert_int_equal(count_in_log(asks), 2);
}

/* --- Who waits, as an inspection tells --- */

struct told {
    int64_t waiters, waited_ms, readers;
};

static void see_waiters(const redlock_result *result, void *data) {
    struct told *told = data;
    redlock_result *copy = redlock_result_copy(result);
    assert_non_null(copy);
    *told = (struct told){redlock_result_waiters(copy), redlock_result_waited_ms(copy), redlock_result_readers(copy)};
    redlock_result_free(copy);
}

/* What an inspection tells if these nodes say so; -2: the node is silent. */
static struct told inspect(const int64_t waiters[5], const int64_t waited_ms[5]) {
    struct told told = {-2, -2, -2};
    assert_is(redlock_group_inspect(fake.group, "r", see_waiters, &told), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        const redlock_vote_kind vote = waiters[i] == -2 ? REDLOCK_VOTE_UNKNOWN : REDLOCK_VOTE_DENIED;
        fake_env_answer_as(&fake, i, REDLOCK_OP_INSPECT,
                           (struct redlock_answer){.vote = vote, .waiters = waiters[i], .waited_ms = waited_ms[i]});
    }
    return told;
}

GROUP_TEST(an_inspection_tells_the_median, five_nodes) {
    static const struct {
        int64_t waiters[5], waited_ms[5];
        struct told told;
    } rows[] = {
        {{0, 0, 0, 0, 0}, {-1, -1, -1, -1, -1}, {0, -1, 0}},
        {{3, 3, 3, 3, 3}, {2000, 2001, 2002, 2003, 2004}, {3, 2002, 0}},
        /* Two wrong clocks, and a node without a queue. */
        {{9, 3, 0, 4, 3}, {900000, 2001, -1, 2003, 0}, {3, 2001, 0}},
        {{1, 0, 0, 0, 1}, {500, -1, -1, -1, 500}, {0, -1, 0}}, /* gone from most nodes */
        {{-2, -2, 2, 2, 2}, {0, 0, 10, 10, 10}, {2, 10, 0}},
        {{-2, -1, -1, 2, 2}, {0, -1, -1, 10, 10}, {-1, -1, 0}}, /* too few can tell */
        {{2, 2, 2, 2, 2}, {-1, -1, -1, -1, -1}, {2, -1, 0}},    /* an ACL forbids TIME */
        {{2, 2, 2, 2, 2}, {-1, -1, -1, 700, -1}, {2, 700, 0}},  /* on all nodes but one */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct told told = inspect(rows[i].waiters, rows[i].waited_ms);
        assert_int_equal(told.waiters, rows[i].told.waiters);
        assert_int_equal(told.waited_ms, rows[i].told.waited_ms);
        assert_int_equal(told.readers, rows[i].told.readers);
    }
}

GROUP_TEST(other_results_know_of_no_waiters, five_nodes) {
    struct told told = {-2, -2, -2};
    assert_is(redlock_group_acquire(fake.group, "r", NULL, NULL, see_waiters, &told), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(told.waiters, -1);
    assert_int_equal(told.waited_ms, -1);
    assert_int_equal(told.readers, -1);
}

/* How many read, if these nodes say so: -1: nobody has the lock there, -2: the node is silent. */
static int64_t count_readers(const int64_t readers[5]) {
    static const char token[] = "0123456789abcdef0123456789abcdefs";
    struct told told = {-2, -2, -2};
    assert_is(redlock_group_inspect(fake.group, "r", see_waiters, &told), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        const redlock_vote_kind vote = readers[i] == -2   ? REDLOCK_VOTE_UNKNOWN
                                       : readers[i] == -1 ? REDLOCK_VOTE_DENIED
                                                          : REDLOCK_VOTE_GRANTED;
        fake_env_answer_as(&fake, i, REDLOCK_OP_INSPECT,
                           (struct redlock_answer){.vote = vote,
                                                   .holder = token,
                                                   .holder_size = sizeof token - 1,
                                                   .holder_ttl_ms = 1000,
                                                   .readers = readers[i]});
    }
    return told.readers;
}

GROUP_TEST(an_inspection_tells_how_many_read, five_nodes) {
    static const struct {
        int64_t readers[5], told;
    } rows[] = {
        {{-1, -1, -1, -1, -1}, 0}, {{0, 0, 0, 0, 0}, 0},   {{2, 2, 2, 2, 2}, 2},     {{1, 2, 2, 3, 3}, 2},
        {{-1, -1, 1, 1, 1}, 1},    {{-2, -2, 4, 2, 3}, 3}, {{-2, -2, -2, 2, 2}, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(count_readers(rows[i].readers), rows[i].told);
    }
}

#define READS_LATE "0000000000000001aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaas"

/* Writes "token nodes ms" for each, with what separates them. */
static void write_name(char *names, const char *separator, const char *token, size_t nodes, int64_t ms) {
    const size_t used = strlen(names);
    (void)snprintf(names + used, 128 - used, "%s%s %zu %lld", separator, token, nodes, (long long)ms);
}

static void see_names(const redlock_result *result, void *data) {
    redlock_lock_reader reader = {.size = sizeof reader};
    redlock_lock_waiter waiter = {.size = sizeof waiter};
    redlock_vote vote = {.size = sizeof vote};
    redlock_result *copy = redlock_result_copy(result);
    assert_non_null(copy);
    for (size_t i = 0; redlock_result_reader(copy, i, &reader) == REDLOCK_OK; i++) {
        write_name(data, ",", reader.token, reader.nodes, reader.ttl_ms);
        assert_string_equal(reader.holder_text, redlock_token_holder(reader.token));
    }
    for (size_t i = 0; redlock_result_waiter(copy, i, &waiter) == REDLOCK_OK; i++) {
        write_name(data, waiter.reads ? "|s " : "|", waiter.token, waiter.nodes, waiter.waited_ms);
        assert_string_equal(waiter.holder_text, redlock_token_holder(waiter.token));
    }
    assert_is(redlock_result_vote(copy, 0, &vote), REDLOCK_OK);
    assert_int_equal(vote.readers, vote.kind == REDLOCK_VOTE_GRANTED ? 1 : 0);
    reader.size = waiter.size = 0;
    assert_is(redlock_result_reader(copy, 0, &reader), REDLOCK_ERR_INVALID);
    assert_is(redlock_result_waiter(copy, 0, &waiter), REDLOCK_ERR_INVALID);
    assert_is(redlock_result_reader(copy, 0, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_result_waiter(copy, 0, NULL), REDLOCK_ERR_INVALID);
    redlock_result_free(copy);
}

/* By their tokens, each on how many nodes; how long a quorum of them will have it, or the median of
 * how long it has waited there. */
GROUP_TEST(an_inspection_names_those_who_read_and_those_who_wait, five_nodes) {
    static const struct {
        const char *names[5]; /* NULL: nobody reads or waits there */
        const char *told;
    } rows[] = {
        {{NULL, NULL, NULL, NULL, NULL}, ""},
        {{"r 1 50 br 2 10 aa", "r 2 11 aar 1 51 b", "r 1 52 br 2 12 aa", "r 2 13 aar 1 53 b", NULL}, ",aa 4 11,b 4 51"},
        /* Below a quorum, the longest; one name is the beginning of another. */
        {{"r 1 5 a", "r 2 7 ab", "r 1 9 a", NULL, NULL}, ",a 2 9,ab 1 7"},
        /* A node that names one twice is one node. */
        {{"r 1 5 ar 1 5 ar 1 5 a", "", "", "", ""}, ",a 1 5"},
        {{"r 4 20 a@w3r 3 1 0@b", "r 4 30 a@w3", "r 4 40 a@w3", "r 4 10 a@w3", "r 4 50 a@w3"}, ",0@b 1 1,a@w3 5 30"},
        /* Some nodes also tell who waits; one was handed over meanwhile. */
        {{"r 1 5 bw 2 70 a2w 2 90 a1", "w 2 91 a1", "w 2 71 a2w 2 99 a1", NULL, "r 2 9 a1"},
         ",a1 1 9,b 1 5|a1 3 91|a2 2 70"},
        {{"w 49 3 " READS_LATE, NULL, NULL, NULL, NULL}, "|s " READS_LATE " 1 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char told[128] = "";
        assert_is(redlock_group_inspect(fake.group, "r", see_names, told), REDLOCK_OK);
        for (unsigned node = 0; node < 5; node++) {
            const char *names = rows[i].names[node];
            const bool read = names != NULL && names[0] != 'w';
            fake_env_answer_as(&fake, node, REDLOCK_OP_INSPECT,
                               (struct redlock_answer){.vote = read ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED,
                                                       .holder = "a",
                                                       .holder_size = 1,
                                                       .first = names,
                                                       .first_size = names == NULL ? 0 : strlen(names),
                                                       .readers = read});
        }
        assert_string_equal(told, rows[i].told);
    }
}
